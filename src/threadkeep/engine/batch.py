"""The tools of one model call: those that need no approval run immediately, the others wait for the user.

Each call ends in exactly one result. The journal records a call before its tool receives it; it runs again
only if running it twice is known to be safe.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from threadkeep.clock import monotonic
from threadkeep.context.tool_results import LEAST_RESULT_TOKENS
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, Notice, ToolResultStored
from threadkeep.engine.call_state import UNKNOWN, AskClient, AskUser, Call, CallState, NextStep, next_step
from threadkeep.engine.call_tasks import CallTasks, InputNeeded, Wake
from threadkeep.engine.journal import Dispatch, Dispatched, InputAwaited
from threadkeep.engine.model_call import ModelReads
from threadkeep.engine.permissions import ToolPermissions
from threadkeep.engine.replay import OpenBatch
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.tools import Toolbox, ToolEvent
from threadkeep.engine.user_requests import OpenRequests, UserRequests, run_by_client
from threadkeep.ports.tools import Asked, InputRequired, Returned

HELD_OPEN_S = 600.0
"""How long a server can hold its call open while it waits for the user."""

BatchStep = ToolEvent | ApprovalRequest | ApprovalResponse | Dispatched | InputAwaited


class Paused(Exception):
    """The turn can't continue until its user decides on the requests with these ids."""

    def __init__(self, requests: frozenset[str]) -> None:
        super().__init__(f"{len(requests)} requests are waiting for the user")
        self.requests = requests


WaitForUser = Callable[[frozenset[str], Callable[[], Awaitable[None]]], Awaitable[None]]
"""What happens while only the user can continue, by deciding these requests; the function returns as soon as
they may have.
"""


async def pause(requests: frozenset[str], woken: Callable[[], Awaitable[None]]) -> None:
    """The turn waits in the database."""
    raise Paused(requests)


class Batch:
    """Runs the tool calls of one model call, each from its current state.

    `room` is how many tokens their results may take in the next request. Each result is cut on arrival to an
    equal share; later turns receive the same text.
    """

    def __init__(
        self,
        open_batch: OpenBatch,
        toolbox: Toolbox,
        user_requests: UserRequests,
        permissions: ToolPermissions,
        timer: TurnTimer,
        *,
        room: int,
        wait_for_user: WaitForUser = pause,
    ) -> None:
        uses, states = open_batch.call.tool_uses, open_batch.states
        self._calls = [
            Call(
                use=use,
                tool=toolbox.tool(use),
                request_id=user_requests.request_id(use.id),
                client_request_id=user_requests.request_id(run_by_client(use.id)),
                state=states.get(use.id, CallState()),
            )
            for use in uses
        ]
        self._toolbox = toolbox
        self._user_requests = user_requests
        self._permissions = permissions
        self._timer = timer
        self._most_tokens = max(room // max(len(uses), 1), LEAST_RESULT_TOKENS)
        self._requests = OpenRequests(user_requests, permissions)
        self._tasks = CallTasks()
        self._wait_for_user = wait_for_user

    async def run(self) -> AsyncGenerator[BatchStep]:
        """Yields events until every call has its result; Paused if only the user can continue the turn.

        Calls named in a Dispatched reach their tools when the next step is requested.
        """
        unfinished = [call for call in self._calls if call.state.reads is None]
        missing = len(unfinished)
        try:
            async with aclosing(self._proceed(unfinished)) as steps:
                async for step in steps:
                    yield step
            while missing:
                match await self._tasks.next():
                    case Wake():
                        continuing = self._take_decisions()
                    case InputNeeded() as needed:
                        continuing = self._await_input(needed)
                    case event:
                        missing -= isinstance(event, ToolResultStored)
                        yield event
                        continue
                async with aclosing(continuing) as steps:
                    async for step in steps:
                        yield step
        finally:
            await self._tasks.cancel()

    def reads(self) -> Sequence[ModelReads]:
        """What the model reads of the calls, in the order in which it made them."""
        return [call.state.reads or self._toolbox.reads(call.use) for call in self._calls]

    async def _proceed(self, calls: Sequence[Call]) -> AsyncGenerator[BatchStep]:
        """Advances calls as far as possible: ends them, asks the user, or passes them to their tools."""
        ready: list[tuple[Call, Dispatch]] = []
        for call in calls:
            match await self._next_step(call):
                case Returned() as returned:
                    if returned.status == "unknown":
                        self._note_unknown(call)
                    for response in await self._requests.withdraw(call):
                        yield response
                    self._tasks.start(self._store(call, returned))
                case Dispatch() as dispatch:
                    call.state = call.state.dispatched()
                    ready.append((call, dispatch))
                case AskUser():
                    self._tasks.listen(self._user_requests.arrived)
                    for request in await self._requests.ask_about(call):
                        yield request
                case AskClient():
                    self._tasks.listen(self._user_requests.arrived)
                    for request in await self._requests.ask_client(call):
                        yield request
        if ready:
            yield Dispatched(tuple(dispatch for _, dispatch in ready))
            for call, _ in ready:
                self._tasks.start(self._hand_over(call))

    async def _next_step(self, call: Call) -> NextStep:
        if call.state.may_have_taken_effect:
            return Returned("unknown", error=UNKNOWN)
        if (decided := call.state.client_decision) is not None:
            # The log has it without the result, which may be large and is about to become the call's.
            decisions = await self._user_requests.decisions()
            call.state = call.state.ended_by_client(decisions.get(call.client_request_id, decided))
        problem = await self._toolbox.problem(call.use, call.arguments)
        return next_step(call, self._permissions, problem)

    def _note_unknown(self, call: Call) -> None:
        """Repeating this call requires approval, both as the model made it and as the user changed it."""
        if call.tool is not None:
            for arguments in (call.use.arguments, call.arguments):
                self._permissions.note_unknown(call.tool, arguments)

    async def _take_decisions(self) -> AsyncGenerator[BatchStep]:
        """Continues with the user's decisions so far, or waits for them if nothing else can happen."""
        decisions = await self._requests.decided()
        if not decisions and not self._tasks.is_busy:
            await self._wait_for_user(self._requests.ids, self._tasks.woken)
            return
        ready: list[Call] = []
        for request_id, it in decisions.items():
            content = None if it.action is ApprovalAction.RESULT else it.content
            yield ApprovalResponse(request_id, it.action, it.scope, it.arguments, content)
            if call := self._requests.take(request_id, it):
                ready.append(call)
        async with aclosing(self._proceed(ready)) as steps:
            async for step in steps:
                yield step

    async def _await_input(self, needed: InputNeeded) -> AsyncGenerator[BatchStep]:
        """A server needs the user's input before the call can continue; nothing runs in the meantime."""
        call = needed.call
        awaited = self._requests.await_input(call, needed.required)
        call.state = call.state.awaiting(awaited)
        yield awaited
        async with aclosing(self._proceed([call])) as steps:
            async for step in steps:
                yield step

    async def _hand_over(self, call: Call) -> None:
        """Runs a call to its one result."""
        assert call.tool is not None
        begun = monotonic()
        returned = await self._toolbox.call(
            call.tool,
            call.use.id,
            call.arguments,
            self._tasks.emit,
            lambda asked: self._hold_open(call, asked),
            given=call.state.given,
        )
        if isinstance(returned, InputRequired):
            self._tasks.emit(InputNeeded(call, returned))
            return
        for response in await self._requests.withdraw(call):  # questions that only an earlier run asked
            self._tasks.emit(response)
        if not call.tool.effect.is_repeatable and (returned.lost or returned.status == "timeout"):
            self._note_unknown(call)
            if returned.lost:  # as if this process had died
                returned = Returned("unknown", error=UNKNOWN, restarted=returned.restarted)
        if returned.restarted:
            notice = Notice("MCP_SERVER_RESTARTED", f"{call.tool.server} restarted and lost its state.")
            self._tasks.emit(notice)
        await self._store(call, returned, duration_ms=int((monotonic() - begun) * 1000))

    async def _store(self, call: Call, returned: Returned, *, duration_ms: int = 0) -> None:
        await self._toolbox.store(
            call.use,
            returned,
            self._tasks.emit,
            duration_ms=duration_ms,
            most_tokens=self._most_tokens,
            preface=call.preface(is_restarted=returned.restarted),
        )

    async def _hold_open(self, call: Call, asked: Asked) -> None:
        """A server asks the user and holds its call open; the turn's clock is paused."""
        request = self._requests.from_server(call, asked, HELD_OPEN_S)
        decided: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._tasks.listen(self._user_requests.arrived)
        if await self._requests.ask(request, call, decided):
            self._tasks.emit(request)
        with self._timer.paused():
            await asyncio.wait(
                [decided, asked.decision], timeout=HELD_OPEN_S, return_when=asyncio.FIRST_COMPLETED
            )
            if not decided.done():  # the request expires, unless the user has just decided
                await self._requests.expire(request.request_id)
                self._tasks.emit(Wake())
            asked.decide(await decided)
