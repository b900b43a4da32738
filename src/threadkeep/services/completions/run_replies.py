"""Model calls that a program's own SDK makes through us: `turn.openai()`. Keys stay here, budgets hold."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from threadkeep.clock import monotonic
from threadkeep.context.attachments import FileRules, files_in, with_contents
from threadkeep.context.call_ids import CallIds
from threadkeep.context.outputs import asking_for, with_repair
from threadkeep.domain.agent import Agent
from threadkeep.domain.approval import ApprovalKind
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.client_tool import ClientTool, check_client_tools
from threadkeep.domain.errors import RateLimited, StorageConflict, ThreadkeepError, Unauthenticated
from threadkeep.domain.events import (
    ApprovalRequest,
    Done,
    EventBody,
    IterationRestart,
    IterationStart,
    Notice,
    Text,
    Thought,
    ToolCalled,
)
from threadkeep.domain.ids import PayloadId, TurnId, new_uuid
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Usage
from threadkeep.domain.outputs.json_text import json_in
from threadkeep.domain.text import storable
from threadkeep.domain.turn import BegunWith, HeldRun, Turn
from threadkeep.domain.user import User
from threadkeep.engine.asking import ModelAsking
from threadkeep.engine.code.outside_calls import LiveRuns, OutsideCalls
from threadkeep.engine.ending import failed, stopped
from threadkeep.engine.journal import JournalEntry
from threadkeep.engine.loop import Pause, TurnStep
from threadkeep.engine.model_call import FinishedCall, ModelCall
from threadkeep.engine.outputs import cannot_be_repaired, invalid, output_check, text_of
from threadkeep.engine.spending import ModelSpending
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.tools import clean_use
from threadkeep.engine.turn_models import TurnModels
from threadkeep.ports.gateway import ModelMessage, ModelRequest, ToolSpec, ToolUse
from threadkeep.ports.models import ConnectedModel
from threadkeep.services.allowances import Rate
from threadkeep.services.completions.completion import Completion, Contents
from threadkeep.services.completions.given import GivenMessage, GivenRules, whole_history
from threadkeep.services.equipment import Equipment
from threadkeep.services.replies.run_tokens import RunTokens
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

CheckReply = Callable[[str], Awaitable[str | None]]
"""Why a reply isn't the JSON that was asked for; None if it is."""

MOST_OUTSIDE_CALLS = 100
"""How many calls one run can make at once on a node."""
MOST_OUTSIDE_CALLS_A_MINUTE = 600
"""How many calls a node takes of the runs of one turn, refilled evenly."""
OWN_MODEL = "default"
"""The name under which a program asks for the model of its turn, without knowing which it is."""
CLOSE_S = 10.0

RUN_ENDED = "The run that this token belongs to has ended, or continues elsewhere."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a program's SDK asks a model."""

    model: str | None
    history: Sequence[GivenMessage]
    begun_with: BegunWith
    """Instructions, tools, temperature and the most tokens."""
    asks_again: bool
    """Whether a reply that broke off is asked for again, unseen."""
    output: Mapping[str, Any] | None = None
    """The JSON schema that the reply is to match: then it is sent whole, once it does."""
    tool_choice: str | None = None
    """The tool that the model must call, or "" for any; None: it decides."""


class RunReplies:
    """Replies to the SDKs of programs that run."""

    def __init__(
        self,
        store: Store,
        tokens: RunTokens,
        equipment: Equipment,
        live: LiveRuns,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._tokens = tokens
        self._equipment = equipment
        self._live = live
        self._caps = caps
        self._running: set[Completion] = set()
        self._rate = Rate(MOST_OUTSIDE_CALLS_A_MINUTE, monotonic)

    async def run(self, token: str) -> HeldRun:
        """The run that a token is of; Unauthenticated once it is over."""
        name = self._tokens.read(token)
        run = await self._store.turns.run(name.turn_id, name.fence)
        if run is None:
            raise Unauthenticated(RUN_ENDED)
        return run

    async def begin(self, run: HeldRun, asked: RunRequest) -> Completion:
        """Begins a reply; it is made as long as somebody reads it, and the run lasts."""
        calls, stop = self._live.calls_of(run.turn.id, run.fence), Stop()
        self._check_limits(run, calls)
        with ExitStack() as place:  # taken at once: others that begin meanwhile count it
            place.enter_context(calls.making(lambda: stop.request("interrupt")))
            completion = await self._completion(run, asked, calls, stop)
            kept = place.pop_all()
        self._running.add(completion)
        completion.task.add_done_callback(lambda _: (self._running.discard(completion), kept.close()))
        return completion

    def _check_limits(self, run: HeldRun, calls: OutsideCalls) -> None:
        if calls.count >= MOST_OUTSIDE_CALLS:
            raise RateLimited(f"A run can make at most {MOST_OUTSIDE_CALLS} model calls at once.")
        if wait_s := math.ceil(self._rate.take(run.turn.id)):
            raise RateLimited(
                f"A run can make {MOST_OUTSIDE_CALLS_A_MINUTE} model calls per minute. "
                f"Try again in {wait_s} s.",
                retry_after_s=wait_s,
            )

    async def _completion(
        self, run: HeldRun, asked: RunRequest, calls: OutsideCalls, stop: Stop
    ) -> Completion:
        agent = await self._store.agents.get(run.agent_id)
        if agent is None or not agent.is_visible_to(User(run.user_id)):
            raise Unauthenticated("The agent of this run is no longer available.")
        agent = self._caps.limited(agent)
        await asyncio.to_thread(check_client_tools, asked.begun_with.tools)  # they may have many schemas
        model = self._model(run, agent, asked.model)
        request = await asyncio.to_thread(_request, agent, model, run, asked)  # the history may be long
        spending = await self._equipment.spending.of_outside_call(run, agent, calls.report)
        files = (file.contents for message in asked.history for file in message.files)
        contents = Contents({id_: content for it in files for id_, content in it.items()})
        loaded = await contents.load({PayloadId(it.content_id) for it in files_in(request.messages)})
        turn = replace(run.turn, id=TurnId(new_uuid()), started_at=self._equipment.clock())
        models = self._equipment.turn_models(agent, model)
        check = self._check(run, asked.output) if asked.output is not None else None
        reply = _Reply(turn, models, spending, stop, check)
        steps = reply.steps(with_contents(request, loaded), asks_again=asked.asks_again)
        return Completion(turn, steps, stop, contents, self._equipment.clock, nullcontext())

    async def close(self) -> None:
        """Interrupts the replies that are being made; what they have used is charged."""
        tasks = [it.task for it in self._running]
        for completion in self._running:
            completion.interrupt()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        await end_tasks(*tasks)

    def _check(self, run: HeldRun, schema: Mapping[str, Any]) -> CheckReply:
        return partial(output_check(self._equipment.schemas, run.user_id), schema)

    def _model(self, run: HeldRun, agent: Agent, name: str | None) -> ConnectedModel:
        """The model that the program names, among those of its agent; or its turn's."""
        models, choice = self._equipment.models, self._equipment.choice
        if name in (None, "", OWN_MODEL):
            return models.get(run.turn.model)
        return models.get(choice.chosen(agent, name).id)


class _Reply:
    """One model call, with the models that reply instead if the first fails."""

    def __init__(
        self,
        turn: Turn,
        models: TurnModels,
        spending: ModelSpending,
        stop: Stop,
        check: CheckReply | None = None,
    ) -> None:
        self._check = check
        self._wrong = ""
        """What doesn't fit in the model's first reply; it is asked once more."""
        self._turn = turn
        self._stop = stop
        self._asking = ModelAsking(models, spending, unreported=None)
        self._ids = CallIds(())
        self._has_said = False
        self._used = Usage(0, 0)
        self._first: tuple[ModelMessage, ...] = ()

    async def steps(self, request: ModelRequest, *, asks_again: bool) -> AsyncGenerator[TurnStep]:
        """What a turn would yield that ends with this call."""
        self._ids = CallIds(request.messages)
        asks_again = asks_again or self._check is not None  # nobody has seen anything of it
        yield IterationStart(1, is_checked=self._check is not None)
        try:
            async for step in self._asked(request, asks_again):
                yield step
            if self._wrong:
                async for step in self._asked(self._asked_again(request), asks_again):
                    yield step
        except Stopped as exc:
            yield stopped(self._turn, exc.reason)
        except StorageConflict:  # it can't reserve anything any more
            raise Unauthenticated(RUN_ENDED) from None
        except ThreadkeepError as exc:
            if not self._has_said:  # its client can still be told with a status
                raise
            yield failed(exc)
        finally:
            await self._asking.settle()

    async def _asked(self, request: ModelRequest, asks_again: bool) -> AsyncGenerator[TurnStep]:
        said = self._asking.reply(request, self._call_tool, _restart, asks_again=asks_again)
        async with aclosing(said), aclosing(self._guarded(said)) as steps:
            async for step in steps:
                yield step

    def _asked_again(self, request: ModelRequest) -> ModelRequest:
        return replace(request, messages=with_repair(request.messages, self._first, self._wrong))

    async def _checked(self, call: FinishedCall) -> bool:
        """Whether a reply is what was asked for; OutputInvalid if it isn't the second time."""
        if self._check is None or call.tool_uses or call.stop_reason == "refusal":
            return True
        problem = await self._stop.guard(partial(self._check, text_of(call)))
        if problem is None:
            return True
        if (error := invalid(problem) if self._wrong else cannot_be_repaired(call, problem)) is not None:
            raise error
        self._wrong, self._first = problem, call.reply()
        return False

    async def _guarded(
        self, said: AsyncGenerator[EventBody | JournalEntry | ModelCall]
    ) -> AsyncGenerator[TurnStep]:
        while True:
            try:
                step = await self._stop.guard(said.__anext__)
            except StopAsyncIteration:
                return
            match step:
                case ModelCall():
                    call = step.finished(1)
                    for reported in self._asking.report():
                        self._used += reported.usage
                        yield reported
                    if await self._checked(call):
                        for last in self._end(call):
                            yield last
                case Text() if self._check is not None:
                    pass  # it is said once it is checked
                case Text() | Thought():
                    self._has_said = True
                    yield step
                case IterationRestart() | Notice():
                    yield step
                case _:
                    pass  # which model replies instead

    async def _call_tool(self, use: ToolUse) -> tuple[ToolUse, None]:
        return await self._ids.settle(clean_use(use)), None

    def _end(self, call: FinishedCall) -> Iterator[TurnStep]:
        """How the call has ended: with calls for the program, or without."""
        self._has_said = True
        if self._check is not None and (said := text_of(call)):
            yield Text(said if call.tool_uses else json_in(said))
        for use in call.tool_uses:
            yield ToolCalled(use.id, use.name, CLIENT, use.arguments)
            yield ApprovalRequest(use.id, ApprovalKind.CLIENT_TOOL, "", 0, tool_call_id=use.id)
        if uses := call.tool_uses:
            yield Pause(frozenset(it.id for it in uses))
        else:
            yield Done("COMPLETED", self._turn.assistant_message_id, self._used, call.stop_reason)


def _restart() -> Iterator[EventBody]:
    yield IterationRestart(1)


def _request(agent: Agent, model: ConnectedModel, run: HeldRun, asked: RunRequest) -> ModelRequest:
    """The request as the program's SDK wrote it: nothing of the agent's is added, nothing is left out."""
    begun_with = asked.begun_with
    tools = tuple(map(_spec, begun_with.tools))
    limits = [it for it in (agent.settings.max_tokens, begun_with.max_tokens) if it]
    system = storable(begun_with.instructions or "")
    if asked.output is not None:
        system = asking_for(asked.output, system)
    rules = GivenRules(
        files=FileRules(model.files, model.model.context_tokens),
        system=system,
        tools=tools,
        max_tokens=min(limits, default=None),
    )
    return ModelRequest(
        model=model.id,
        system=system,
        messages=whole_history(asked.history, rules),
        tools=tools,
        temperature=begun_with.temperature,
        max_tokens=rules.max_tokens,
        tool_choice=asked.tool_choice,
        output=asked.output,
        cache_key=run.turn.conversation_id,
    )


def _spec(tool: ClientTool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, {"type": "object", "properties": {}, **tool.parameters})
