"""The tools that one model call asks for: those that may run do so at once, the others wait for the user.

Each call ends in exactly one result. A call is handed to its tool only after that is stored, and never again
unless running it twice is known to be safe.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from threadkeep.domain.approval import Answer, ApprovalAction, ApprovalKind
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, Notice, ToolResulted
from threadkeep.domain.tool_rules import Rules, ToolAccess, access_of
from threadkeep.engine.ending import NOT_ANSWERED
from threadkeep.engine.journal import Dispatch, Dispatched
from threadkeep.engine.replay import CallState, OpenBatch, Signature, signature
from threadkeep.engine.tool_results import LEAST_RESULT_TOKENS
from threadkeep.engine.tools import Toolbox, ToolEvent
from threadkeep.ports.gateway import ToolResultBlock, ToolUse
from threadkeep.ports.tools import Outcome, Tool

UNKNOWN = "The call was interrupted. It may have taken effect; check before you repeat it."
RESTARTED = "This server was restarted; what it held is gone."
DENIED_BY_RULE = "The owner of this agent does not allow this tool to run."
DENIED_BY_USER = "The user did not allow this call."

BatchStep = ToolEvent | ApprovalRequest | ApprovalResponse | Dispatched


class Paused(Exception):
    """Nothing of the turn can go on before its user answers the requests with these ids."""

    def __init__(self, requests: frozenset[str]) -> None:
        super().__init__(f"{len(requests)} requests wait for the user")
        self.requests = requests


@dataclass(frozen=True, slots=True)
class Asking:
    """What a turn asks its user about a call, ready to be stored."""

    request: ApprovalRequest
    tool: Tool
    arguments: Mapping[str, Any]


class Approvals(Protocol):
    """How a turn asks its user."""

    def request_id(self, tool_call_id: str) -> str:
        """The id of the request about a call: always the same, so that nobody is asked twice."""
        ...

    @property
    def expires_at(self) -> int:
        """When a request that is made now is no longer answered."""
        ...

    async def granted(self) -> frozenset[tuple[str, str]]:
        """The servers and tools that the user allows in this conversation."""
        ...

    async def ask(self, asking: Asking) -> None:
        """Stores a request, once; it may be answered from now on."""
        ...

    async def answers(self) -> Mapping[str, Answer]:
        """The answers that are there by now, by the ids of the requests."""
        ...

    async def arrived(self) -> None:
        """Returns when there may be another answer."""
        ...


@dataclass(slots=True)
class _Call:
    """One call and how far it has come."""

    use: ToolUse
    tool: Tool | None
    state: CallState

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Those that the user chose, or the model's."""
        answer = self.state.answer
        return self.use.arguments if answer is None or answer.arguments is None else answer.arguments


class Batch:
    """Runs the calls of one model call, from wherever each of them stands.

    `room` is how many tokens their results may take in the next request. Each is cut as it comes, to an equal
    share: the next turns are sent the same.
    """

    def __init__(
        self,
        open_batch: OpenBatch,
        toolbox: Toolbox,
        approvals: Approvals,
        rules: Rules,
        unknown: frozenset[Signature],
        *,
        room: int,
        check_boundary: Callable[[], None],
    ) -> None:
        uses, states = open_batch.call.tool_uses, open_batch.states
        self._calls = [_Call(use, toolbox.tool(use), states.get(use.id, CallState())) for use in uses]
        self._toolbox = toolbox
        self._approvals = approvals
        self._rules = rules
        self._unknown = unknown
        self._check_boundary = check_boundary
        self._most_tokens = max(room // max(len(uses), 1), LEAST_RESULT_TOKENS)
        self._granted: frozenset[tuple[str, str]] = frozenset()
        self._waiting: dict[str, _Call] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        """Those that run calls, and the one that listens for answers."""
        self._events: asyncio.Queue[ToolEvent | BaseException | None] = asyncio.Queue()
        self._missing = 0

    async def run(self) -> AsyncGenerator[BatchStep]:
        """What happens until every call has its result; Paused where only the user can go on."""
        unfinished = [call for call in self._calls if call.state.result is None]
        self._missing = len(unfinished)
        if any(self._access(call) is ToolAccess.ASK for call in unfinished):
            self._granted = await self._approvals.granted()
        try:
            async with aclosing(self._proceed(unfinished)) as steps:
                async for step in steps:
                    yield step
            while self._missing:
                event = await self._next()
                if event is not None:
                    self._missing -= isinstance(event, ToolResulted)
                    yield event
                    continue
                answered = await self._answered()
                if not answered and not self._is_busy:
                    raise Paused(frozenset(self._waiting))
                for call in answered:
                    yield self._response(call)
                async with aclosing(self._proceed(answered)) as steps:
                    async for step in steps:
                        yield step
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def answers(self) -> Sequence[ToolResultBlock]:
        """What the model is told, in the order of its calls."""
        return [call.state.result or self._toolbox.answer(call.use) for call in self._calls]

    @property
    def _is_busy(self) -> bool:
        return bool(self._running) or not self._events.empty()

    async def _next(self) -> ToolEvent | None:
        """What a call tells next; None when there may be an answer, or nothing else can happen."""
        event = await self._events.get() if self._is_busy else None
        if isinstance(event, BaseException):
            raise event  # our own failure; a tool's would be a result
        return event

    async def _proceed(self, calls: Sequence[_Call]) -> AsyncGenerator[BatchStep]:
        """Takes calls as far as they can go now: asks the user, hands over, or settles."""
        ready: list[tuple[_Call, Dispatch]] = []
        for call in calls:
            match self._decide(call):
                case Outcome() as outcome:
                    self._start(self._toolbox.finish(call.use, outcome, self._tell))
                case Dispatch() as dispatch:
                    ready.append((call, dispatch))
                case None:
                    if request := await self._wait_for_user(call):
                        yield request
        if ready:
            self._check_boundary()
            yield Dispatched(tuple(dispatch for _, dispatch in ready))
            for call, _ in ready:
                self._start(self._hand_over(call))

    def _decide(self, call: _Call) -> Outcome | Dispatch | None:
        """How a call goes on: it has ended, it may be handed over, or the user has to say."""
        use, tool, state = call.use, call.tool, call.state
        if state.dispatch is not None and not state.dispatch.effect.is_repeatable:
            return Outcome("unknown", error=UNKNOWN)
        if problem := self._toolbox.problem(use, call.arguments):
            return Outcome("error", error=problem)
        assert tool is not None
        if state.dispatch is not None:
            return _again(state.dispatch)
        if self._access(call) is ToolAccess.DENY:
            return Outcome("denied", error=DENIED_BY_RULE)
        if state.answer is not None:
            return _answered_outcome(state.answer) or Dispatch(use.id, tool.effect)
        return None if self._must_ask(call, tool) else Dispatch(use.id, tool.effect)

    def _access(self, call: _Call) -> ToolAccess:
        tool = call.tool
        return access_of(self._rules, tool.server, tool.name) if tool else ToolAccess.ALLOW

    def _must_ask(self, call: _Call, tool: Tool) -> bool:
        """A question always asks; a tool where a rule says so, or where it may have taken effect before."""
        if tool.asks_user or self._is_repeated(call, tool):
            return True
        return self._access(call) is ToolAccess.ASK and (tool.server, tool.name) not in self._granted

    def _is_repeated(self, call: _Call, tool: Tool) -> bool:
        return signature(tool.server, tool.name, call.use.arguments) in self._unknown

    async def _wait_for_user(self, call: _Call) -> ApprovalRequest | None:
        """Asks the user about a call; None where they have been asked before."""
        assert call.tool is not None
        if not self._waiting:
            self._tasks.add(asyncio.create_task(self._listen()))
        request_id = self._approvals.request_id(call.use.id)
        self._waiting[request_id] = call
        if call.state.is_asked:
            return None
        asking = Asking(self._request(call, call.tool, request_id), call.tool, call.use.arguments)
        await self._approvals.ask(asking)
        return asking.request

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
        again = " again: it may have taken effect already" if self._is_repeated(call, tool) else ""
        return ApprovalRequest(
            request_id=request_id,
            kind=ApprovalKind.TOOL,
            message=f"Call {tool.name} of {tool.server}{again}?",
            expires_at=self._approvals.expires_at,
            tool_call_id=call.use.id,
        )

    async def _listen(self) -> None:
        while True:
            await self._approvals.arrived()
            self._events.put_nowait(None)

    async def _answered(self) -> list[_Call]:
        """The calls that the user has answered by now."""
        if not self._waiting:
            return []
        answers = await self._approvals.answers()
        answered: list[_Call] = []
        for request_id in list(self._waiting):
            if answer := answers.get(request_id):
                call = self._waiting.pop(request_id)
                call.state = replace(call.state, answer=answer)
                answered.append(call)
                self._note_grant(call, answer)
        return answered

    def _note_grant(self, call: _Call, answer: Answer) -> None:
        if answer.is_grant and call.tool:
            self._granted |= {(call.tool.server, call.tool.name)}

    def _response(self, call: _Call) -> ApprovalResponse:
        answer = call.state.answer
        assert answer is not None
        return ApprovalResponse(
            request_id=self._approvals.request_id(call.use.id),
            action=answer.action,
            scope=answer.scope,
            arguments=answer.arguments,
            content=answer.content,
        )

    async def _hand_over(self, call: _Call) -> None:
        """Runs a call to its one result."""
        assert call.tool is not None
        begun = time.monotonic()
        outcome = await self._toolbox.call(call.tool, call.use.id, call.arguments, self._tell)
        if outcome.restarted:
            self._tell(
                Notice("MCP_SERVER_RESTARTED", f"{call.tool.server} was restarted; what it held is gone.")
            )
        await self._toolbox.finish(
            call.use,
            outcome,
            self._tell,
            duration_ms=int((time.monotonic() - begun) * 1000),
            most_tokens=self._most_tokens,
            preface=_preface(call.state.answer, is_restarted=outcome.restarted),
        )

    def _tell(self, event: ToolEvent) -> None:
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


def _again(before: Dispatch) -> Dispatch:
    return Dispatch(before.id, before.effect, before.attempt + 1)


def _answered_outcome(answer: Answer) -> Outcome | None:
    """What an answer makes of a call that is not handed over."""
    match answer.action:
        case ApprovalAction.DENY:
            return Outcome("denied", error=DENIED_BY_USER)
        case ApprovalAction.EXPIRE:
            return Outcome("denied", error=NOT_ANSWERED)
        case ApprovalAction.ANSWER:
            return Outcome("ok", result=answer.content)
        case ApprovalAction.ALLOW | ApprovalAction.EDIT:
            return None


def _preface(answer: Answer | None, *, is_restarted: bool) -> str:
    """What the model reads before a result: that its server lost its state, or the user changed the call."""
    told = f"{RESTARTED}\n" if is_restarted else ""
    if answer is not None and answer.arguments is not None:
        told += f"The user changed the arguments to {msgspec.json.encode(answer.arguments).decode()}.\n"
    return told
