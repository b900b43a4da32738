"""The tools of one model call: those that need no approval run immediately, the others wait for the user.

Each call ends in exactly one result. The journal records a call before its tool receives it; it runs again
only if running it twice is known to be safe.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from threadkeep.context.tool_results import LEAST_RESULT_TOKENS
from threadkeep.domain.approval import ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, Notice, ToolResultStored
from threadkeep.engine.ending import NO_DECISION
from threadkeep.engine.journal import Dispatch, Dispatched, InputAwaited, InputNoted
from threadkeep.engine.model_call import ModelReads
from threadkeep.engine.permissions import ToolPermissions
from threadkeep.engine.replay import CallState, OpenBatch
from threadkeep.engine.tools import Toolbox, ToolEvent
from threadkeep.ports.gateway import ToolUse
from threadkeep.ports.tools import Asked, GivenInput, Grant, InputRequest, InputRequired, Returned, Tool

UNKNOWN = "The call was interrupted and may have taken effect. Check before you repeat it."
RESTARTED = "This server restarted and lost its state."
DENIED_BY_RULE = "The agent's owner doesn't allow this tool."
DENIED_BY_USER = "The user denied this call."

HELD_OPEN_S = 600.0
"""How long a server can hold its call open while it waits for the user."""

BatchStep = ToolEvent | ApprovalRequest | ApprovalResponse | Dispatched | InputAwaited


class Paused(Exception):
    """The turn can't continue until its user answers the requests with these ids."""

    def __init__(self, requests: frozenset[str]) -> None:
        super().__init__(f"{len(requests)} requests are waiting for the user")
        self.requests = requests


@dataclass(frozen=True, slots=True)
class Asking:
    """A turn's request to its user about a call, ready to store."""

    request: ApprovalRequest
    tool: Tool
    arguments: Mapping[str, Any]


class UserRequests(Protocol):
    """How a turn asks its user."""

    def request_id(self, tool_call_id: str) -> str:
        """The id of the request for a call: always the same, so that nobody is asked twice."""
        ...

    @property
    def expires_at(self) -> int:
        """When a request created now expires."""
        ...

    def expires_in(self, seconds: float) -> int:
        """When a request expires that can wait at most this long."""
        ...

    async def granted(self) -> frozenset[Grant]:
        """The tools that the user has allowed in this conversation."""
        ...

    async def ask(self, asking: Asking) -> None:
        """Stores a request, once; the user can answer it from now on."""
        ...

    async def withdraw(self, request_id: str) -> bool:
        """Expires a request that nothing waits for; False if it has an answer."""
        ...

    async def decisions(self) -> Mapping[str, Decision]:
        """The answers so far, by request id."""
        ...

    async def arrived(self) -> None:
        """Returns when there may be another answer."""
        ...


@dataclass(slots=True)
class _Call:
    """A call and its progress."""

    use: ToolUse
    tool: Tool | None
    state: CallState
    asked_count: int = 0
    """How often its server has asked the user while it held the call open."""

    @property
    def given(self) -> GivenInput | None:
        """The user's answers to its server's requests, once all are there."""
        awaited, inputs = self.state.awaited, self.state.inputs
        if awaited is None or any(it.request_id not in inputs for it in awaited.requests):
            return None
        decisions = {it.key: inputs[it.request_id] for it in awaited.requests}
        return GivenInput(awaited.state, dict[str, Decision | None](decisions))

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The user's arguments, or the model's."""
        decision = self.state.decision
        return self.use.arguments if decision is None or decision.arguments is None else decision.arguments


_TakeDecision = Callable[[Decision], "_Call | None"]
"""Accepts an answer; returns the call that continues with it, if any."""


@dataclass(frozen=True, slots=True)
class _Awaits:
    """A call whose server needs answers from the user."""

    call: _Call
    required: InputRequired


class Batch:
    """Runs the tool calls of one model call, each from its current state.

    `room` is how many tokens their results may take in the next request. Each result is cut on arrival to an
    equal share; later turns receive the same text.
    """

    def __init__(
        self,
        open_batch: OpenBatch,
        toolbox: Toolbox,
        approvals: UserRequests,
        permissions: ToolPermissions,
        *,
        room: int,
        check_boundary: Callable[[], None],
        pause_timer: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        uses, states = open_batch.call.tool_uses, open_batch.states
        self._calls = [_Call(use, toolbox.tool(use), states.get(use.id, CallState())) for use in uses]
        self._toolbox = toolbox
        self._approvals = approvals
        self._permissions = permissions
        self._check_boundary = check_boundary
        self._pause_timer = pause_timer
        self._most_tokens = max(room // max(len(uses), 1), LEAST_RESULT_TOKENS)
        self._waiting: dict[str, _TakeDecision] = {}
        """What accepts the answer to each open request."""
        self._listening: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        """The tasks that run calls, and the one that listens for answers."""
        self._events: asyncio.Queue[BatchStep | _Awaits | BaseException | None] = asyncio.Queue()
        self._missing = 0

    async def run(self) -> AsyncGenerator[BatchStep]:
        """Yields events until every call has its result; Paused if only the user can continue the turn."""
        unfinished = [call for call in self._calls if call.state.reads is None]
        self._missing = len(unfinished)
        try:
            async with aclosing(self._proceed(unfinished)) as steps:
                async for step in steps:
                    yield step
            while self._missing:
                event = await self._next()
                if isinstance(event, _Awaits):
                    going = self._await_input(event)
                elif event is not None:
                    self._missing -= isinstance(event, ToolResultStored)
                    yield event
                    continue
                else:
                    going = self._take_decisions()
                async with aclosing(going) as steps:
                    async for step in steps:
                        yield step
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def reads(self) -> Sequence[ModelReads]:
        """The results for the model, in the order of its calls."""
        return [call.state.reads or self._toolbox.reads(call.use) for call in self._calls]

    @property
    def _is_busy(self) -> bool:
        return bool(self._running) or not self._events.empty()

    async def _next(self) -> BatchStep | _Awaits | None:
        """The next event of a call; None when there may be an answer, or nothing else can happen."""
        event = await self._events.get() if self._is_busy else None
        if isinstance(event, BaseException):
            raise event  # our own failure; a tool's would be a result
        return event

    async def _proceed(self, calls: Sequence[_Call]) -> AsyncGenerator[BatchStep]:
        """Advances calls as far as possible: asks the user, calls the tool, or settles."""
        ready: list[tuple[_Call, Dispatch]] = []
        for call in calls:
            match await self._decide(call):
                case Returned() as returned:
                    if returned.status == "unknown":
                        self._note_unknown(call)
                    for response in await self._withdraw(call):
                        yield response
                    preface = _preface(call.state.decision, is_restarted=False)
                    self._start(self._toolbox.store(call.use, returned, self._emit, preface=preface))
                case Dispatch() as dispatch:
                    if call.given is None:  # the server asks from the beginning
                        call.state = replace(call.state, rounds=0)
                    ready.append((call, dispatch))
                case None:
                    for request in await self._wait_for_user(call):
                        yield request
        if ready:
            self._check_boundary()
            yield Dispatched(tuple(dispatch for _, dispatch in ready))
            for call, _ in ready:
                self._start(self._hand_over(call))

    async def _decide(self, call: _Call) -> Returned | Dispatch | None:
        """The next step of a call: it has ended, it may run, or the user must decide."""
        use, tool, state = call.use, call.tool, call.state
        if state.dispatch is not None and not state.dispatch.effect.is_repeatable:
            return Returned("unknown", error=UNKNOWN)
        if problem := await self._toolbox.problem(use, call.arguments):
            return Returned("error", error=problem)
        assert tool is not None
        if state.dispatch is not None:
            return _again(state.dispatch)
        if state.awaited is not None:
            return Dispatch(use.id, tool.effect) if call.given else None
        if self._permissions.is_denied(tool):
            return Returned("denied", error=DENIED_BY_RULE)
        if state.decision is not None:
            return _returned_by(state.decision) or Dispatch(use.id, tool.effect)
        is_asked = self._approvals.request_id(use.id) in state.asked
        must_ask = is_asked or self._permissions.must_ask(tool, use.arguments)
        return None if must_ask else Dispatch(use.id, tool.effect)

    def _note_unknown(self, call: _Call) -> None:
        """Repeating this call requires approval, both as the model made it and as the user changed it."""
        if call.tool is not None:
            for arguments in (call.use.arguments, call.arguments):
                self._permissions.note_unknown(call.tool, arguments)

    async def _withdraw(self, call: _Call) -> list[ApprovalResponse]:
        """Expires the requests about a call that won't continue."""
        undecided = sorted(call.state.undecided)
        ended = [it for it in undecided if await self._approvals.withdraw(it)]
        return [ApprovalResponse(request_id, ApprovalAction.EXPIRE) for request_id in ended]

    async def _wait_for_user(self, call: _Call) -> list[ApprovalRequest]:
        """Asks the user about a call, or passes on its server's questions; returns the new requests."""
        tool = call.tool
        assert tool is not None
        if (awaited := call.state.awaited) is not None:
            asked = [self._input_request(call, it) for it in awaited.requests]
            return [it for it in asked if await self._ask(it, tool, call, _take_input(call, it.request_id))]
        request = self._request(call, tool, self._approvals.request_id(call.use.id))
        return [request] if await self._ask(request, tool, call, self._take_permission(call)) else []

    async def _ask(self, request: ApprovalRequest, tool: Tool, call: _Call, take: "_TakeDecision") -> bool:
        """Waits for the answer to a request; False if the user was already asked."""
        if request.request_id in call.state.inputs:
            return False
        self._waiting[request.request_id] = take
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
            self._tasks.add(self._listening)
        if request.request_id in call.state.asked:
            return False
        await self._approvals.ask(Asking(request, tool, call.use.arguments))
        return True

    def _take_permission(self, call: _Call) -> "_TakeDecision":
        def take(decision: Decision) -> _Call:
            call.state = replace(call.state, decision=decision, undecided=frozenset())
            if call.tool:
                self._permissions.remember(call.tool, decision)
            return call

        return take

    async def _await_input(self, awaits: "_Awaits") -> AsyncGenerator[BatchStep]:
        """A server needs the user's answers before the call can continue; nothing runs in the meantime."""
        call, id_ = awaits.call, awaits.call.use.id
        noted = tuple(
            InputNoted(
                key=it.key,
                request_id=self._approvals.request_id(f"{id_}/{call.state.rounds}/{it.key}/{_asked(it)}"),
                message=it.message,
                schema=None if it.schema is None else dict(it.schema),
                url=it.url,
            )
            for it in awaits.required.requests
        )
        entry = InputAwaited(id_, awaits.required.state, noted)
        rounds = call.state.rounds + 1
        call.state = replace(call.state, dispatch=None, awaited=entry, inputs={}, rounds=rounds)
        yield entry
        async with aclosing(self._proceed([call])) as steps:
            async for step in steps:
                yield step

    def _input_request(self, call: _Call, noted: InputNoted) -> ApprovalRequest:
        return ApprovalRequest(
            request_id=noted.request_id,
            kind=ApprovalKind.ELICITATION,
            message=noted.message,
            expires_at=self._approvals.expires_at,
            tool_call_id=call.use.id,
            schema=noted.schema,
            url=noted.url,
        )

    async def _hold_open(self, call: _Call, asked: Asked) -> None:
        """A server asks the user and holds its call open; the turn's clock is paused."""
        assert call.tool is not None
        request = ApprovalRequest(
            request_id=self._approvals.request_id(f"{call.use.id}#{call.asked_count}/{_asked(asked)}"),
            kind=ApprovalKind.ELICITATION,
            message=asked.message,
            expires_at=self._approvals.expires_in(HELD_OPEN_S),
            tool_call_id=call.use.id,
            schema=asked.schema,
            url=asked.url,
        )
        call.asked_count += 1
        decided: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

        def take(decision: Decision) -> None:
            decided.set_result(decision)

        if await self._ask(request, call.tool, call, take):
            self._emit(request)
        with self._pause_timer():
            await asyncio.wait(
                [decided, asked.decision], timeout=HELD_OPEN_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not decided.done():  # then the request expires, unless a decision arrived just now
                await self._approvals.withdraw(request.request_id)
                self._events.put_nowait(None)
            asked.decide(await decided)

    def _request(self, call: _Call, tool: Tool, request_id: str) -> ApprovalRequest:
        if tool.asks_user:
            question, choices = call.use.arguments.get("question"), call.use.arguments.get("choices")
            return ApprovalRequest(
                request_id=request_id,
                kind=ApprovalKind.QUESTION,
                message=str(question),
                expires_at=self._approvals.expires_at,
                tool_call_id=call.use.id,
                schema={"type": "string", "enum": choices} if choices else None,
            )
        is_repeated = self._permissions.is_repeated(tool, call.use.arguments)
        again = " again (the first call may already have taken effect)" if is_repeated else ""
        return ApprovalRequest(
            request_id=request_id,
            kind=ApprovalKind.TOOL,
            message=f"Call {tool.name} on {tool.server}{again}?",
            expires_at=self._approvals.expires_at,
            tool_call_id=call.use.id,
        )

    async def _listen(self) -> None:
        while True:
            await self._approvals.arrived()
            self._events.put_nowait(None)

    async def _take_decisions(self) -> AsyncGenerator[BatchStep]:
        """Continues with the user's answers so far; Paused if nothing else can happen."""
        decisions = await self._approvals.decisions()
        ready: list[_Call] = []
        found = [request_id for request_id in self._waiting if request_id in decisions]
        if not found and not self._is_busy:
            raise Paused(frozenset(self._waiting))
        for request_id in found:
            decision = decisions[request_id]
            yield ApprovalResponse(
                request_id, decision.action, decision.scope, decision.arguments, decision.content
            )
            if call := self._waiting.pop(request_id)(decision):
                ready.append(call)
        async with aclosing(self._proceed(ready)) as steps:
            async for step in steps:
                yield step

    async def _hand_over(self, call: _Call) -> None:
        """Runs a call to its one result."""
        assert call.tool is not None
        begun = time.monotonic()
        returned = await self._toolbox.call(
            call.tool,
            call.use.id,
            call.arguments,
            self._emit,
            lambda asked: self._hold_open(call, asked),
            given=call.given,
        )
        if isinstance(returned, InputRequired):
            self._events.put_nowait(_Awaits(call, returned))
            return
        for response in await self._withdraw(call):  # questions that only an earlier run asked
            self._emit(response)
        if not call.tool.effect.is_repeatable and (returned.lost or returned.status == "timeout"):
            self._note_unknown(call)
            if returned.lost:  # as if this process had died
                returned = Returned("unknown", error=UNKNOWN, restarted=returned.restarted)
        if returned.restarted:
            self._emit(Notice("MCP_SERVER_RESTARTED", f"{call.tool.server} restarted and lost its state."))
        await self._toolbox.store(
            call.use,
            returned,
            self._emit,
            duration_ms=int((time.monotonic() - begun) * 1000),
            most_tokens=self._most_tokens,
            preface=_preface(call.state.decision, is_restarted=returned.restarted),
        )

    def _emit(self, event: ToolEvent | ApprovalRequest | ApprovalResponse) -> None:
        self._events.put_nowait(event)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._tasks.discard(task)
        if not task.cancelled() and (exc := task.exception()):
            self._events.put_nowait(exc)
        elif self._waiting and not self._running:  # wakes `run`, which expects more events
            self._events.put_nowait(None)


def _asked(asked: Asked | InputRequest) -> str:
    """The question, for its id: a call that runs again may ask something else, which has no answer yet."""
    return msgspec.json.encode((asked.message, asked.schema, asked.url), order="deterministic").decode()


def _take_input(call: _Call, request_id: str) -> _TakeDecision:
    def take(decision: Decision) -> _Call | None:
        call.state = replace(call.state, inputs={**call.state.inputs, request_id: decision})
        return call if call.given else None

    return take


def _again(before: Dispatch) -> Dispatch:
    return Dispatch(before.id, before.effect, before.attempt + 1)


def _returned_by(decision: Decision) -> Returned | None:
    """What a call returns that a decision settles; None if the call is to run."""
    match decision.action:
        case ApprovalAction.DENY:
            return Returned("denied", error=DENIED_BY_USER)
        case ApprovalAction.EXPIRE:
            return Returned("denied", error=NO_DECISION)
        case ApprovalAction.ANSWER:
            return Returned("ok", result=decision.content)
        case ApprovalAction.ALLOW | ApprovalAction.EDIT:
            return None


def _preface(decision: Decision | None, *, is_restarted: bool) -> str:
    """The note before a result: that its server lost its state, or that the user changed the call."""
    preface = f"{RESTARTED}\n" if is_restarted else ""
    if decision is not None and decision.arguments is not None:
        preface += f"The user changed the arguments to {msgspec.json.encode(decision.arguments).decode()}.\n"
    return preface
