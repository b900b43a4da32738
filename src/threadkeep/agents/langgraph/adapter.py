"""`durable(graph)`: a graph as an agent in code."""

import base64
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import Command

from threadkeep.agents.agent import Agent, agent
from threadkeep.agents.errors import AgentError
from threadkeep.agents.langgraph.checkpoints import JournalSaver
from threadkeep.agents.langgraph.events import RUNTIME, Events, EventsRuntime
from threadkeep.agents.langgraph.graph_run import GraphRun, set_running
from threadkeep.agents.langgraph.interrupts import answer
from threadkeep.agents.langgraph.messages import as_langchain, last_message, missed, text_of
from threadkeep.agents.langgraph.models import Listener, record_model_calls
from threadkeep.agents.langgraph.tools import record_tools
from threadkeep.agents.media import DEFAULT_FILES
from threadkeep.agents.model_errors import model_failed
from threadkeep.agents.replies import StructuredReply
from threadkeep.agents.turn import Turn
from threadkeep.agents.values import class_of, encode, plain
from threadkeep.domain.file import FileKind
from threadkeep.wire.programs import Effect

Input = Callable[[Turn], Any]
"""What a graph is given for a turn."""
Replied = Callable[[Any], str | None]
"""The text of a reply, from the state in which the graph ended."""
Custom = Callable[[Turn, Any], Coroutine[Any, Any, object]]
"""Shows what a node writes with `get_stream_writer()`."""

log = logging.getLogger("threadkeep.agents")

SCOPE = STATE = "langgraph"
_ONLY_SYNC = "Asynchronous implementation of awrap_"
"""How LangChain says that a middleware is for `invoke` alone."""


def durable(
    graph: Pregel[Any, Any, Any, Any],
    *,
    input: Input | None = None,  # noqa: A002 - LangGraph's name
    reply: Replied | None = None,
    custom: Custom | None = None,
    effects: Mapping[str, Effect] | None = None,
    types: Sequence[type] = (),
    context: Callable[[Turn], Any] | None = None,
    config: RunnableConfig | None = None,
    files: Sequence[FileKind] = DEFAULT_FILES,
    **meta: Any,
) -> Agent:
    """A compiled graph, or an agent of `create_agent`, as an agent in code: unchanged, and durable.

    `input` makes what the graph is given of a turn, and `reply` the text of the state in which it ended; a
    graph with `messages` needs neither. `custom` shows what nodes write with `get_stream_writer()`. `effects`
    says for tools by name what repeating them would do. `types` are classes of values in the graph's state,
    besides messages and plain values. `context` and `config` are passed to the graph. `files` are those that
    its models take as they are; of others, they get the text. The rest is what `@agent` takes.
    """
    if not isinstance(graph, Pregel):  # type: ignore[redundant-expr]
        raise TypeError(
            f"`durable` takes a compiled graph, not a {type(graph).__qualname__}: `builder.compile()`."
        )
    has_messages = "messages" in cast("Any", graph).channels
    if not has_messages and (input is None or reply is None):
        raise TypeError(
            "The state of this graph has no `messages`: say what it is given, and what its reply is, "
            "`durable(graph, input=lambda turn: {…}, reply=lambda state: …)`."
        )
    own = _Own(
        graph=graph,
        input=input,
        reply=reply,
        custom=custom or show,
        effects=dict(effects or {}),
        types=tuple(types),
        context=context,
        config=config or {},
        files=files,
    )

    async def run(turn: Turn) -> str | StructuredReply | None:
        return await _Running(own, turn).reply()

    key = meta.pop("key", None) or _key(graph)
    declared: dict[str, Any] = {"key": key, "name": _name(graph, key), **meta}
    return agent(**declared)(run)


def _name(graph: Pregel[Any, Any, Any, Any], key: str) -> str:
    name = graph.get_name()
    called = key.replace("-", " ") if name == "LangGraph" else name.replace("_", " ").strip()
    return called[:1].upper() + called[1:]


def _key(graph: Pregel[Any, Any, Any, Any]) -> str:
    return re.sub(r"[^a-z0-9]+", "-", graph.get_name().lower()).strip("-")[:64] or "langgraph"


async def show(turn: Turn, event: Any) -> None:
    """Shows a custom event as a notice: a text, or the one text of an object."""
    if isinstance(event, dict):
        texts = [it for it in cast("dict[str, Any]", event).values() if isinstance(it, str)]
        event = texts[0] if len(texts) == 1 else None
    if isinstance(event, str) and event:
        await turn.notice(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """A graph, and what its owner said of it."""

    graph: Pregel[Any, Any, Any, Any]
    input: Input | None
    reply: Replied | None
    custom: Custom
    effects: dict[str, Effect]
    types: tuple[type, ...]
    context: Callable[[Turn], Any] | None
    config: RunnableConfig
    files: Sequence[FileKind]


class _Running:
    """A graph in one run of a turn's function."""

    def __init__(self, own: _Own, turn: Turn) -> None:
        record_model_calls()
        record_tools()
        self._own = own
        self._turn = turn
        self._scoped = turn.scope(SCOPE)
        self._saver = JournalSaver(self._scoped, own.types)
        self._graph: Any = own.graph.copy({"checkpointer": self._saver})
        self._run = GraphRun(self._scoped, self._saver, own.effects)
        self._is_sync = False
        """Whether it runs in a thread, because some of its middleware isn't `async`."""
        self._saver.until_recorded = self._run.until_recorded
        events = Events(self._run, lambda it: own.custom(turn, it))
        given: dict[str, Any] = dict(own.config)
        callbacks = given.pop("callbacks", None)
        self._config: dict[str, Any] = {
            **given,
            "callbacks": [*(callbacks if isinstance(callbacks, list) else []), Listener(self._run)],
            "configurable": {
                **given.get("configurable", {}),
                "thread_id": turn.conversation.id,
                RUNTIME: EventsRuntime(stream_writer=events.write, store=own.graph.store),
            },
        }

    async def reply(self) -> str | StructuredReply | None:
        """Runs the graph to its end; returns what of its reply is not shown yet."""
        set_running(self._run)
        if (saved := self._scoped.saved) is not None:
            await self._saver.restore([base64.b64decode(it) if isinstance(it, str) else it for it in saved])
            if self._saver.now.is_running:
                await self._pass(self._resumption())
        else:
            await self._pass(await self._given())
        while (stopped := await self._stopped()) is not None:
            if not await self._answer(stopped):
                break
            await self._pass(self._resumption())
        state = await self._state()
        self._turn.state[STATE] = {"kept": self._saver.for_next_turn(), "message": self._turn.message.id}
        text, structured = self._text(state.values), _structured(state.values)
        return text if structured is None else StructuredReply(structured, text)

    # Passes

    async def _pass(self, given: Any) -> None:
        """Runs the graph until it ends, or asks."""
        self._run.begin_pass()
        self._saver.now.is_running = True
        options: dict[str, Any] = {"stream_mode": "updates", "subgraphs": True, "durability": "sync"}
        if self._own.context is not None:
            options["context"] = self._own.context(self._turn)
        try:
            await self._stream(given, options)
        except Exception as exc:
            if self._run.failed is None or self._run.failed[1] is not exc:
                raise
            model = self._run.failed[0]
            log.error("turn %s: the model %s failed: %s", self._turn.id, model, class_of(exc))
            raise model_failed(exc) or AgentError(f"The model {model} gave no answer.") from exc
        await self._run.until_recorded(lambda _: True)
        self._saver.now.is_running = False
        await self._saver.save()

    async def _stream(self, given: Any, options: dict[str, Any]) -> None:
        """Runs the graph; its texts and events are shown where they come from."""
        if not self._is_sync:
            try:
                async for _ in self._graph.astream(given, self._config, **options):
                    pass
                return
            except NotImplementedError as exc:
                if _ONLY_SYNC not in str(exc) or not self._saver.now.spaces:
                    raise
            self._is_sync = True
            self._run.begin_pass()
            given = self._resumption()
        run = self._turn.function_run
        await run.threads.functions.run(run, self._stream_in_thread, given, options)

    def _stream_in_thread(self, given: Any, options: dict[str, Any]) -> None:
        for _ in self._graph.stream(given, self._config, **options):
            pass

    def _resumption(self) -> Any:
        """What a graph is given that was cut off: its answers, unless it has taken them."""
        now = self._saver.now
        if now.answers is None:
            return None
        answers = self._saver.types.loads_typed(now.answers)
        left = {id_: it for id_, it in answers.items() if id_ in self._saver.pending()}
        return Command(resume=left) if left else None

    async def _state(self) -> Any:
        return await self._graph.aget_state(self._config)

    async def _stopped(self) -> Any:
        """The state in which the graph waits, if it does."""
        state = await self._state()
        return state if state.interrupts or state.next else None

    async def _answer(self, state: Any) -> bool:
        """Asks what the graph waits for; whether it is to go on."""
        now = self._saver.now
        if not state.interrupts:  # a breakpoint that the graph was compiled with
            asking = self._scoped.scope(f"asks/{now.round}")
            if not await asking.approve(f"Go on with {', '.join(state.next)}?"):
                return False
            self._note_answers(None)
            return True
        answers = await answer(self._run, state.interrupts)
        self._note_answers(self._saver.types.dumps_typed(answers))
        return True

    def _note_answers(self, answers: tuple[str, bytes] | None) -> None:
        """Saved with what the graph does next: until then, the requests are asked for again."""
        now = self._saver.now
        now.round += 1
        now.answers = answers

    # What goes in and comes out

    async def _given(self) -> Any:
        """What the graph is given at the beginning of a turn."""
        kept = self._turn.state.get(STATE)
        if kept:
            await self._saver.restore(kept["kept"])
        if self._own.input is not None:
            return self._own.input(self._turn)
        if not kept:
            return {"messages": await self._context()}
        between = missed(await self._scoped.history(), kept["message"])
        return {"messages": [*between, *await self._context(only_last=True)]}

    async def _context(self, *, only_last: bool = False) -> Sequence[AnyMessage]:
        """The messages up to the turn's own, or only that."""
        given = await self._scoped.history(as_context=True, files=self._own.files)
        given = given[-1:] if only_last else given
        await self._saver.media.load_of(given)
        return as_langchain(given, self._turn.message.id, self._saver.media)

    def _text(self, values: Any) -> str | None:
        if self._own.reply is not None:
            return self._own.reply(values)
        last = last_message(values)
        if not isinstance(last, AIMessage):
            structured = _structured(values)
            return None if structured is None else encode(structured).decode()
        is_said = self._turn.is_shown and last.id in self._saver.now.said
        return None if is_said else text_of(last.content)


def _structured(values: Any) -> Any:
    """What `create_agent(response_format=…)` leaves in the state."""
    found = cast("dict[str, Any]", values) if isinstance(values, dict) else {}
    structured = found.get("structured_response")
    return None if structured is None else plain(structured)
