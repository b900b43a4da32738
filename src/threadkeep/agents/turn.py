"""What an agent's function is given: the turn that it runs."""

import asyncio
import itertools
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar, TypeVarTuple, cast, overload

from msgspec import Raw, structs

from threadkeep.agents.agent import Agent
from threadkeep.agents.attempts import report, take
from threadkeep.agents.errors import (
    Denied,
    NotInAStep,
    NotJson,
    OutcomeUnknown,
    OutputInvalid,
    StepInsideStep,
    TurnError,
    TurnMisused,
)
from threadkeep.agents.facts import TurnFacts
from threadkeep.agents.json_schemas import schema_of
from threadkeep.agents.listening import current_listener
from threadkeep.agents.others import OtherAgent, asked_text, run_other, tools_of
from threadkeep.agents.output import text_item
from threadkeep.agents.replies import (
    Messages,
    Reply,
    Thought,
    Usage,
    Wanted,
    read_messages,
    tool_result,
    user_message,
)
from threadkeep.agents.run import FunctionRun, checked, current_step, is_in_step
from threadkeep.agents.state import State
from threadkeep.agents.steps import OpenSteps, StepOptions, step_of, tool_step
from threadkeep.agents.tool import Tool, as_tool
from threadkeep.agents.values import Unstorable, convert, decode, encode, plain
from threadkeep.domain.file import FileKind
from threadkeep.domain.text import one_line, storable
from threadkeep.wire.programs import (
    NOTHING,
    AgentGranted,
    AskClaim,
    CallClaim,
    CallReturned,
    Claim,
    ContentClaim,
    Effect,
    FileItem,
    HitItem,
    HitsItem,
    ModelClaim,
    ModelMessageItem,
    ModelReply,
    ModelToolCall,
    NoticeItem,
    OfferedAgent,
    ProgramTool,
    ProgressItem,
    SaveClaim,
    ServerTool,
    Start,
    StartFile,
    StartMessage,
    StepAccess,
    TakeClaim,
    TextItem,
    ThoughtItem,
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Streamed = str | Thought | Usage
GivenTool = Callable[..., Any]
"""A tool, or a function that is to be one."""

MOST_FILE_BYTES = 32 * 1024 * 1024
MOST_QUESTION_CHARACTERS = 32_000
MOST_SCHEMA_BYTES = 64 * 1024
MOST_SCOPE_CHARACTERS = 256
MOST_ROUNDS = 200
"""How often `run` asks the model at most."""
MOST_READ = 100_000
"""How many characters of a result a model reads."""

_YES_OR_NO = {"type": "string", "enum": ["yes", "no"]}

_current_turn: ContextVar["Turn | None"] = ContextVar("current_turn", default=None)


@dataclass(slots=True, kw_only=True)
class Shared:
    """What all scopes of one agent share in a run."""

    run: FunctionRun
    steps: OpenSteps
    agent: Agent | None
    """None for one without code, which another agent runs."""
    start: Start
    depth: int = 0
    """How many agents run this one, one in another."""
    state: State | None = None
    """Of an agent that another one runs; it ends with that."""
    has_own_text: bool = False
    """Whether it was given another text than the turn's message."""


class Turn(TurnFacts):
    """One turn of an agent: what its user sent, and everything that the agent can do about it."""

    def __init__(self, shared: Shared, scope: str = "") -> None:
        super().__init__(shared.run, shared.start)
        self._shared = shared
        self._scope = scope
        self._tokens: list[Token[Turn | None]] = []

    @property
    def scope_name(self) -> str:
        """What the keys of this scope begin with."""
        return self._scope

    @property
    def own_agent(self) -> Agent | None:
        """The agent that sees the turn like this; None for one without code."""
        return self._shared.agent

    @property
    def depth(self) -> int:
        """How many agents run this one, one in another."""
        return self._shared.depth

    # What is shown

    async def say(self, text: str) -> None:
        """Shows a piece of the reply."""
        if text or not isinstance(text, str):  # type: ignore[redundant-expr]
            await self._run.show(text_item(TextItem, text))

    async def think(self, text: str) -> None:
        """Shows a piece of reasoning."""
        if text or not isinstance(text, str):  # type: ignore[redundant-expr]
            await self._run.show(text_item(ThoughtItem, text))

    async def notice(self, text: str) -> None:
        """Shows a notice."""
        await self._run.show(text_item(NoticeItem, text))

    async def cite(self, hits: Sequence[HitItem | Mapping[str, Any]], query: str = "") -> None:
        """Shows passages that the reply is based on: a `text` each, and maybe its `source` and `page`."""
        try:
            passages = tuple(it if isinstance(it, HitItem) else convert(dict(it), HitItem) for it in hits)
        except (Unstorable, TypeError, ValueError) as exc:
            raise NotJson("What a turn cites has a `text`", str(exc)) from exc
        await self._run.show(checked("turn.cite", HitsItem(passages, storable(query))))

    async def attach(self, name: str, content: bytes | str | Path, media_type: str | None = None) -> None:
        """Attaches a file to the reply: its bytes, or where they are."""
        if isinstance(content, str | Path):
            path = Path(content)
            content = cast("bytes", await self._run.threads.steps.run(self._run, _read_file, path))
        if len(content) > MOST_FILE_BYTES:
            raise ValueError(f"{name!r} has {len(content)} bytes; a file can have at most {MOST_FILE_BYTES}.")
        kind = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
        described = checked("turn.attach", FileItem(one_line(storable(name)), kind, b""))
        await self._run.show(FileItem(described.name, described.media_type, bytes(content)))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Shows how far the step has come that runs."""
        step_key()
        item = ProgressItem(progress, total, None if message is None else storable(message))
        await self._run.show(checked("turn.progress", item))

    # Steps

    @overload
    async def step(
        self,
        fn: Callable[[*Ts], AsyncIterator[Streamed]],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> str: ...
    @overload
    async def step(
        self,
        fn: Callable[[*Ts], AsyncIterator[Any]],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> Any: ...
    @overload
    async def step(
        self,
        fn: Callable[[*Ts], Iterator[Streamed]],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> str: ...
    @overload
    async def step(
        self,
        fn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> T: ...
    @overload
    async def step(
        self,
        fn: Callable[[*Ts], T],
        *args: *Ts,
        effect: Effect = ...,
        access: StepAccess = ...,
        name: str | None = ...,
        key: object = ...,
        timeout_s: float | None = ...,
        retries: int = ...,
        title: str | None = ...,
        hidden: bool = ...,
        unknown: Literal["raise", "ask"] = ...,
    ) -> T: ...
    async def step(
        self,
        fn: Callable[..., Any],
        *args: Any,
        effect: Effect | None = None,
        access: StepAccess = "allow",
        name: str | None = None,
        key: object = None,
        timeout_s: float | None = None,
        retries: int = 0,
        title: str | None = None,
        hidden: bool = False,
        unknown: Literal["raise", "ask"] = "raise",
    ) -> Any:
        """Calls a function once, whatever crashes; returns what is recorded of it.

        `effect` says what a repetition would do: `read` changes nothing, `idempotent` may be repeated,
        `write` may not, and is what a step is if nothing says otherwise. A write that was cut off raises
        OutcomeUnknown. Where the function is a tool, its own effect and access can only be made stricter.
        """
        options = StepOptions(
            effect=effect,
            access=access,
            name=name,
            key=key,
            timeout_s=timeout_s,
            retries=retries,
            title=title,
            hidden=hidden,
            unknown=unknown,
        )
        return await self.take_step(fn, args, options)

    async def take_step(self, fn: Callable[..., Any], args: tuple[Any, ...], options: StepOptions) -> Any:
        """What `step` does, with all options that a step of ours can have."""
        return await take(self._run, self._shared.steps, step_of(fn, args, {}, self._scope, options))

    # Models

    async def model(
        self,
        messages: Messages,
        *,
        system: str | None = None,
        model: str | None = None,
        tools: Sequence[GivenTool] = (),
        output: Any = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        show: bool = True,
    ) -> Reply:
        """Asks a model once, through the server's gateways. What the user sent meanwhile is asked, too.

        With an `output`, a type or a JSON schema, the reply is JSON of it, checked by the server, which asks
        once more if it doesn't fit and then raises OutputInvalid; `reply.output` has the value.
        """
        return await self._ask_model(
            read_messages(messages),
            system=system,
            model=model,
            tools=tuple(as_tool(it).declaration for it in tools),
            server_tools=False,
            output=output,
            temperature=temperature,
            max_tokens=max_tokens,
            show=show,
        )

    async def run(
        self,
        *,
        system: str | None = None,
        tools: Sequence[GivenTool] = (),
        model: str | None = None,
        messages: Messages | None = None,
        output: Any = None,
    ) -> Reply:
        """Asks a model and calls its tools until it has replied, if asked for with a value of `output`."""
        asked = read_messages(messages) if messages is not None else await self.history(as_context=True)
        agent = self._shared.agent
        given = (*(agent.tools if agent is not None else ()), *map(as_tool, tools))
        own = {it.name: it for it in given}
        reply = await self._converse(asked, own, {}, system=system, model=model, output=output)
        if reply.tool_calls:
            raise TurnError(f"The model has asked for tools {MOST_ROUNDS} times without replying.")
        return reply

    async def reply_as_configured(self, most_rounds: int) -> Reply:
        """Replies as an agent without code does, whose prompt and model the server adds: with its tools, and
        the agents that its model may call. For our own programs.
        """
        others = tools_of(await self._take("agents", list[OfferedAgent]))
        asked = await self.history(as_context=True)
        rounds = min(most_rounds or MOST_ROUNDS, MOST_ROUNDS)
        reply = await self._converse(asked, {}, others, most_rounds=rounds)
        if reply.tool_calls:
            await self.notice(f"The agent has reached its limit of {rounds} tool rounds.")
        return reply

    async def _converse(
        self,
        asked: list[ModelMessageItem],
        own: Mapping[str, Tool[..., Any]],
        others: Mapping[str, tuple[str, ProgramTool]],
        *,
        system: str | None = None,
        model: str | None = None,
        output: Any = None,
        most_rounds: int = MOST_ROUNDS,
    ) -> Reply:
        """Asks a model, and calls its own tools and the agents that it asks for, until it has replied; the
        last of so many replies may ask for more.
        """
        declared = (*(it.declaration for it in own.values()), *(it for _, it in others.values()))

        async def call(use: ModelToolCall) -> dict[str, Any]:
            return await self._call_for_model(use, own, others)

        for rounds in itertools.count(1):
            reply = await self._ask_model(
                asked, system=system, model=model, tools=declared, server_tools=True, output=output
            )
            if not reply.tool_calls or rounds == most_rounds:
                return reply
            results = await asyncio.gather(*map(call, reply.tool_calls))
            steered = map(user_message, reply.steering)
            asked = [*asked, *steered, reply.message, user_message(list(results))]
        raise AssertionError("a conversation with a model ends")

    async def _ask_model(
        self,
        messages: Sequence[ModelMessageItem],
        *,
        system: str | None,
        model: str | None,
        tools: tuple[ProgramTool, ...],
        server_tools: bool,
        output: Any = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        show: bool = True,
    ) -> Reply:
        wanted, is_shown = Wanted.of(output), show and self.is_shown
        steering = tuple(await self.steering()) if is_shown else ()

        def make(id_: int) -> ModelClaim:
            return ModelClaim(
                id=id_,
                messages=(*messages, *map(user_message, steering)),
                scope=self._scope,
                system=system or "",
                model=model,
                tools=tools,
                server_tools=server_tools,
                temperature=temperature,
                max_tokens=max_tokens,
                output=wanted.schema,
                show=is_shown,
            )

        replied = await self._claim("turn.model", make, ModelReply)
        if is_shown:
            self._run.shown_reply = replied.text
        if (listener := current_listener.get()) is not None:
            listener.count(Usage(replied.model, replied.input_tokens, replied.output_tokens))
            if show:
                listener.hear_model(replied.text)
        try:
            return wanted.read(replied, is_shown=show, steering=steering)
        except Unstorable as exc:
            raise OutputInvalid(f"The model's reply isn't the output that was asked for: {exc}.") from exc

    async def _call_for_model(
        self,
        call: ModelToolCall,
        own: Mapping[str, Tool[..., Any]],
        others: Mapping[str, tuple[str, ProgramTool]],
    ) -> dict[str, Any]:
        """Calls a tool that the model asked for; what goes wrong is for the model to read."""
        try:
            if (other := others.get(call.name)) is not None:
                text = (await self.agent(other[0]).run(asked_text(call.arguments))).text
            else:
                text = await self._called_text(call, own)
            is_error = False
        except (Denied, OutcomeUnknown) as exc:
            text, is_error = exc.for_model, True
        except Exception as exc:
            if isinstance(exc, StepInsideStep):
                raise
            text, is_error = f"{type(exc).__name__}: {exc}", True
        return tool_result(call.id, text, is_error=is_error)

    async def _called_text(self, call: ModelToolCall, own: Mapping[str, Tool[..., Any]]) -> str:
        if (tool := own.get(call.name)) is None:
            return (await self._call_server(call.name, call.arguments, call.id)).text
        returned = await self.call(tool, call.arguments, call_id=call.id)
        text = returned if isinstance(returned, str) else encode(returned).decode()
        return text if len(text) <= MOST_READ else f"{text[:MOST_READ]}\n[The rest is cut off.]"

    # Tools

    async def call(
        self,
        tool: "str | GivenTool",
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
    ) -> Any:
        """Calls a tool: of a server or of the client by name, which gives a CallReturned; or a function.

        `call_id` is the id that a model gave the call, if one asked for it: it tells equal calls apart.
        """
        tool = tool if isinstance(tool, str) else as_tool(tool)
        name = tool if isinstance(tool, str) else tool.name
        try:
            given = cast("dict[str, Any]", plain(dict(arguments or {})))
        except Unstorable as exc:
            raise NotJson(f"The arguments of `{name}` can't be written as JSON: {exc}.") from exc
        if isinstance(tool, Tool):
            return await take(self._run, self._shared.steps, tool_step(tool, given, call_id, self._scope))
        return await self._call_server(tool, given, call_id)

    async def _call_server(self, tool: str, arguments: dict[str, Any], call_id: str | None) -> CallReturned:
        def make(id_: int) -> CallClaim:
            return CallClaim(id=id_, tool=tool, arguments=arguments, scope=self._scope, call_id=call_id)

        return await self._claim("turn.call", make, CallReturned)

    async def tools(self) -> list[ServerTool]:
        """The tools of the agent's servers, and of the client."""
        return await self._take("tools", list[ServerTool])

    # Other agents

    def agent(self, name: str) -> OtherAgent:
        """Another agent by its key, or by its id if it isn't in code: `await turn.agent("billing").run(…)`.

        It runs inside this turn, with its own model, tools and rules, if the turn's user may use it.
        """
        return OtherAgent(name, self._run_other)

    async def handoff(self, name: str, text: str | None = None) -> Reply:
        """Lets another agent reply in place of this one, to the turn's message or to another text."""
        return await self._run_other(name, text, is_handoff=True)

    async def _run_other(self, name: str, text: str | None, *, is_handoff: bool = False) -> Reply:
        def make(granted: AgentGranted, agent: Agent | None) -> Turn:
            return self._inside(granted, agent, text, is_handoff=is_handoff)

        asked = self.text if text is None and is_handoff else text
        return await run_other(self._run, self._scope, name, cast("str", asked), make, is_handoff=is_handoff)

    def _inside(
        self, granted: AgentGranted, agent: Agent | None, text: str | None, *, is_handoff: bool
    ) -> "Turn":
        """The turn as an agent sees it that this one runs."""
        own = self._start.message
        files = own.files if is_handoff else ()
        start = structs.replace(
            self._start,
            agent=granted.key or granted.name,
            version=granted.version,
            message=StartMessage(own.id, own.text if text is None else text, files),
            model=None,
            client_tools=(),
            state=NOTHING,
            settings={},
        )
        shared = Shared(
            run=self._run,
            steps=OpenSteps((agent or self._run.agent).function_of),
            agent=agent,
            start=start,
            depth=self._shared.depth + 1,
            state=State(NOTHING, is_in_step),
            has_own_text=text is not None,
        )
        return Turn(shared, granted.scope)

    # The user

    async def ask(self, message: str, choices: Sequence[str] | None = None, type: Any = None) -> Any:  # noqa: A002
        """Asks the user; None if they decline. The turn may wait for days: the function starts again then.

        `type` is what the answer becomes, or a JSON schema that it fits.
        """
        schema, kind, is_wrapped = _question(choices, type)
        answer = await self.ask_form(message, schema)
        if answer is None:
            return None
        try:
            return decode(encode(answer["answer"] if is_wrapped else answer), kind)
        except (Unstorable, KeyError, TypeError) as exc:
            raise TurnError(f"The user's answer doesn't fit the question: {exc}.") from exc

    async def approve(self, message: str) -> bool:
        """Asks the user for a yes or a no; to decline is a no."""
        return await self.ask_form(message, _YES_OR_NO) == "yes"

    async def ask_form(self, message: str, schema: dict[str, Any] | None) -> Any:
        """Asks the user for an answer that fits a JSON schema; None if they decline."""
        if len(message) > MOST_QUESTION_CHARACTERS:
            raise TurnMisused(
                f"A question has at most {MOST_QUESTION_CHARACTERS} characters; not {len(message)}. "
                "Say the rest first: `turn.say(text)`."
            )
        if schema is not None and (size := len(encode(schema))) > MOST_SCHEMA_BYTES:
            raise TurnMisused(
                f"Choices, or the type of an answer, take at most {MOST_SCHEMA_BYTES} bytes; not {size}."
            )

        def make(id_: int) -> AskClaim:
            return AskClaim(id=id_, message=storable(message), scope=self._scope, schema=schema)

        return await self._claim("turn.ask", make, Any)

    async def steering(self) -> list[str]:
        """What the user has sent meanwhile, and the agent was not given yet."""
        if not self.is_shown:  # it is for the agent that replies
            return []
        return await self._take("steering", list[str])

    # The past

    @overload
    async def history(
        self, limit: int | None = None, *, as_context: Literal[False] = False
    ) -> list[dict[str, Any]]: ...
    @overload
    async def history(
        self,
        limit: int | None = None,
        *,
        as_context: Literal[True],
        files: Sequence[FileKind] | None = None,
    ) -> list[ModelMessageItem]: ...
    async def history(
        self, limit: int | None = None, *, as_context: bool = False, files: Sequence[FileKind] | None = None
    ) -> list[Any]:
        """The messages before the turn's own; `as_context`, with it, as a model would receive them.

        `files` are those that a model of yours takes as they are; the others are text. Without it, they are
        as the agent's own model takes them.
        """
        if isinstance(limit, int) and limit < 1:
            raise ValueError(f"`limit` is at least 1, not {limit}.")
        if not self.is_shown:  # all that it knows is what it was asked
            return [user_message(self.text)] if as_context else []
        if as_context:
            kind = list[ModelMessageItem]
            found = await self._take("history", kind, limit=limit, as_context=True, files=files)
            return [*found, user_message(self.text)] if self._shared.has_own_text else found
        return await self._take("history", list[dict[str, Any]], limit=limit)

    async def _take(
        self,
        what: Literal["steering", "history", "tools", "agents"],
        kind: Any,
        *,
        limit: int | None = None,
        as_context: bool = False,
        files: Sequence[FileKind] | None = None,
    ) -> Any:
        def make(id_: int) -> TakeClaim:
            return TakeClaim(
                id=id_,
                what=what,
                scope=self._scope,
                limit=limit,
                as_context=as_context,
                files=None if files is None else tuple(files),
            )

        return await self._claim(f"turn.{what}", make, kind)

    async def content(self, file: StartFile | str) -> bytes | None:
        """The bytes of a file of the message, or of one in a message for a model, by its id.

        None if they are gone, or more than 32 MiB. They never change, so no step is needed.
        """
        id_ = file if isinstance(file, str) else file.id
        return await self._claim("turn.content", lambda it: ContentClaim(it, id_), bytes | None)

    async def _claim(self, name: str, make: Callable[[int], Claim], kind: Any) -> Any:
        value = await self._run.claim(name, make)
        try:
            return decode(value, kind)
        except Unstorable as exc:
            raise TurnError(f"What the server recorded of {name} can't be read: {exc}.") from exc

    # Records

    def usage(
        self,
        model: str,
        input_tokens: int,
        output_tokens: int,
        *,
        cache_read_tokens: int = 0,
        cost: str | Decimal | None = None,
    ) -> "asyncio.Future[Any]":
        """Reports a model call that the agent made itself. It needn't be awaited."""
        return report(
            self._run, Usage(model, input_tokens, output_tokens, cache_read_tokens, cost), self._scope
        )

    @property
    def state(self) -> dict[str, Any]:
        """What the agent keeps for the next turn of this branch; inside a step it can't be changed."""
        return self._own_state.view()

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._own_state.replace(state)

    @property
    def _own_state(self) -> State:
        return self._run.state if self._shared.state is None else self._shared.state

    def scope(self, name: str) -> "Turn":
        """The same turn with keys of its own; as a context manager, also that of `current_turn()`."""
        if not all(name.split("/")) or one_line(name) != name or len(name) > MOST_SCOPE_CHARACTERS:
            raise ValueError(
                f"A scope's name has 1 to {MOST_SCOPE_CHARACTERS} characters in one line, with something on "
                f"both sides of every slash; not {name[:60]!r}."
            )
        return Turn(self._shared, f"{self._scope}/{name}" if self._scope else name)

    async def save(self, value: Any) -> None:
        """Records a point to start from: what this scope recorded before it needn't be claimed again."""
        try:
            encoded = Raw(encode(value))
        except Unstorable as exc:
            raise NotJson("What is saved can't be written as JSON", str(exc)) from exc

        def make(id_: int) -> SaveClaim:
            return SaveClaim(
                id=id_,
                value=encoded,
                scope=self._scope,
                state=self._run.changed_state(),
                is_read=self._scope in self._run.read_saved,
            )

        await self._run.claim("turn.save", make)
        self._run.saved[self._scope] = encoded

    @property
    def saved(self) -> Any:
        """The last value that was saved in this scope."""
        self._run.read_saved.add(self._scope)
        saved = self._run.saved.get(self._scope)
        return None if saved is None else decode(saved)

    def __enter__(self) -> "Turn":
        self._tokens.append(_current_turn.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current_turn.reset(self._tokens.pop())


def current_turn() -> Turn:
    """The turn in whose function this runs; raises LookupError outside one."""
    turn = _current_turn.get()
    if turn is None:
        raise LookupError("No turn runs here.")
    return turn


def in_turn() -> bool:
    """Whether a turn's function runs here."""
    return _current_turn.get() is not None


def in_step() -> bool:
    """Whether a step's function runs here."""
    return is_in_step()


def step_key() -> str:
    """Identifies the step that runs here, the same for every attempt: a key for idempotent requests."""
    step = current_step.get()
    if step is None or step.is_over:
        raise NotInAStep("`step_key()` and `turn.progress()` work only inside a step.")
    return step.idempotency_key


def turn_of(run: FunctionRun) -> Turn:
    """The turn of a run, as its function is given it."""
    turn = Turn(Shared(run=run, steps=OpenSteps(run.agent.function_of), agent=run.agent, start=run.start))
    _current_turn.set(turn)
    return turn


def _read_file(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MOST_FILE_BYTES:
        raise ValueError(f"{path.name!r} has {size} bytes; a file can have at most {MOST_FILE_BYTES}.")
    return path.read_bytes()


def _question(choices: Sequence[str] | None, kind: Any) -> tuple[dict[str, Any] | None, Any, bool]:
    """The schema of an answer, what it becomes, and whether it is in an object of its own."""
    if choices is not None:
        if isinstance(choices, str):
            raise ValueError(f"`choices` is a list of texts: `choices=[{choices[:60]!r}]`.")
        if not choices or any(not isinstance(it, str) for it in choices):  # type: ignore[redundant-expr]
            raise ValueError("`choices` are texts, at least one.")
        return {"type": "string", "enum": list(choices)}, str, False
    if kind is None or kind is str:
        return {"type": "string"}, str, False
    schema = cast("dict[str, Any]", kind) if isinstance(kind, dict) else schema_of(kind)
    kind = Any if isinstance(kind, dict) else kind
    if schema.get("type") == "object":
        return schema, kind, False
    answer = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
    return answer, kind, True
