"""Model calls that a program's own SDK makes through us: `turn.openai()`. Keys stay here, budgets hold."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from threadkeep.context.attachments import FileRules, files_in, with_contents
from threadkeep.context.call_ids import CallIds
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
    UsageReported,
)
from threadkeep.domain.ids import PayloadId, TurnId, new_uuid
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Usage
from threadkeep.domain.text import storable
from threadkeep.domain.turn import BegunWith, HeldRun, Turn
from threadkeep.domain.user import User
from threadkeep.engine.asking import ModelAsking
from threadkeep.engine.code.outside_calls import LiveRuns, OutsideCalls
from threadkeep.engine.ending import failed, stopped
from threadkeep.engine.journal import JournalEntry
from threadkeep.engine.loop import Pause, TurnStep
from threadkeep.engine.model_call import FinishedCall, ModelCall
from threadkeep.engine.spending import ModelSpending
from threadkeep.engine.stop import Stop, Stopped
from threadkeep.engine.tools import clean_use
from threadkeep.engine.turn_models import TurnModels
from threadkeep.ports.gateway import ModelRequest, ToolSpec, ToolUse
from threadkeep.ports.models import ConnectedModel
from threadkeep.services.completions.completion import Completion, Contents
from threadkeep.services.completions.given import GivenMessage, GivenRules, whole_history
from threadkeep.services.equipment import Equipment
from threadkeep.services.replies.run_tokens import RunTokens
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

MOST_OUTSIDE_CALLS = 100
"""How many calls one run can make at once on a node."""
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

    async def run(self, token: str) -> HeldRun:
        """The run that a token is of; Unauthenticated once it is over."""
        name = self._tokens.read(token)
        run = await self._store.turns.run(name.turn_id, name.fence)
        if run is None:
            raise Unauthenticated(RUN_ENDED)
        return run

    async def begin(self, run: HeldRun, asked: RunRequest) -> Completion:
        """Begins a reply; it is made as long as somebody reads it, and the run lasts."""
        calls = self._live.calls_of(run.turn.id, run.fence)
        if calls.count >= MOST_OUTSIDE_CALLS:
            raise RateLimited(f"A run can make at most {MOST_OUTSIDE_CALLS} model calls at once.")
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
        stop = Stop()
        reply = _Reply(turn, self._equipment.turn_models(agent, model), spending, stop)
        steps = reply.steps(with_contents(request, loaded), asks_again=asked.asks_again)
        place = self._place(calls, stop)
        completion = Completion(turn, steps, stop, contents, self._equipment.clock, place)
        self._running.add(completion)
        completion.task.add_done_callback(lambda _: self._running.discard(completion))
        return completion

    async def close(self) -> None:
        """Interrupts the replies that are being made; what they have used is charged."""
        tasks = [it.task for it in self._running]
        for completion in self._running:
            completion.interrupt()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        await end_tasks(*tasks)

    @asynccontextmanager
    async def _place(self, calls: OutsideCalls, stop: Stop) -> AsyncGenerator[None]:
        with calls.making(lambda: stop.request("interrupt")):
            yield

    def _model(self, run: HeldRun, agent: Agent, name: str | None) -> ConnectedModel:
        """The model that the program names, among those of its agent; or its turn's."""
        models, choice = self._equipment.models, self._equipment.choice
        if name in (None, "", OWN_MODEL):
            return models.get(run.turn.model)
        return models.get(choice.chosen(agent, name).id)


class _Reply:
    """One model call, with the models that reply instead if the first fails."""

    def __init__(self, turn: Turn, models: TurnModels, spending: ModelSpending, stop: Stop) -> None:
        self._turn = turn
        self._stop = stop
        self._asking = ModelAsking(models, spending, unreported=None)
        self._ids = CallIds(())
        self._has_said = False

    async def steps(self, request: ModelRequest, *, asks_again: bool) -> AsyncGenerator[TurnStep]:
        """What a turn would yield that ends with this call."""
        self._ids = CallIds(request.messages)
        said = self._asking.reply(request, self._call_tool, _restart, asks_again=asks_again)
        yield IterationStart(1)
        try:
            async with aclosing(said):
                async for step in self._guarded(said):
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
                    for last in self._end(step.finished(1)):
                        yield last
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
        used = self._asking.unreported or Usage(0, 0)
        yield UsageReported.of(used, self._asking.model)
        for use in call.tool_uses:
            yield ToolCalled(use.id, use.name, CLIENT, use.arguments)
            yield ApprovalRequest(use.id, ApprovalKind.CLIENT_TOOL, "", 0, tool_call_id=use.id)
        if uses := call.tool_uses:
            yield Pause(frozenset(it.id for it in uses))
        else:
            yield Done("COMPLETED", self._turn.assistant_message_id, used, call.stop_reason)


def _restart() -> Iterator[EventBody]:
    yield IterationRestart(1)


def _request(agent: Agent, model: ConnectedModel, run: HeldRun, asked: RunRequest) -> ModelRequest:
    """The request as the program's SDK wrote it: nothing of the agent's is added, nothing is left out."""
    begun_with = asked.begun_with
    tools = tuple(map(_spec, begun_with.tools))
    limits = [it for it in (agent.settings.max_tokens, begun_with.max_tokens) if it]
    system = storable(begun_with.instructions or "")
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
        cache_key=run.turn.conversation_id,
    )


def _spec(tool: ClientTool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, {"type": "object", "properties": {}, **tool.parameters})
