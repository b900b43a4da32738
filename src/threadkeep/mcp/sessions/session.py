"""One session with a server, held in its own task and shared by everyone who may use that server.

Only the session's own task enters and leaves the SDK's scopes: a caller that stops or gives up cancels one
request and nothing else.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextvars import ContextVar
from typing import Any

import mcp_types as mcp
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import RootModel, ValidationError

from threadkeep.mcp.limits import Limits
from threadkeep.mcp.link import Link, LinkBroken, causes
from threadkeep.mcp.sessions.call_result import MOST_TOOLS
from threadkeep.mcp.sessions.elicitation import (
    DECLINED,
    NotSupported,
    addresses_required,
    continued,
    elicit_result,
    input_required,
    question_of,
)
from threadkeep.mcp.sessions.incoming import NOT_ANSWERED, IncomingMessages
from threadkeep.mcp.sessions.open_call import OpenCall
from threadkeep.mcp.sessions.tool_list import tools_of
from threadkeep.ports.tools import GivenInput, InputRequired, Progress, Returned, Step, Tool
from threadkeep.program_log import about
from threadkeep.tasks import end_tasks
from threadkeep.version import __version__

log = logging.getLogger("threadkeep.mcp")

IDEMPOTENCY_KEY = "threadkeep/idempotencyKey"
"""The field of `_meta` that stays the same when a call is repeated."""

_PROGRESS_EVERY_S = 0.1
_ENDING_S = 5.0
LOOK_EVERY_S = 15.0
"""How often a server is checked while its user is asked."""
_ROUND_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0)
"""The pauses before each repeat, if a server asks to be called again."""
_CLIENT = mcp.Implementation(name="threadkeep", version=__version__)


_call_here: ContextVar[OpenCall | None] = ContextVar("call", default=None)
"""The call on whose own stream a message came: the SDK runs handlers in that request's context."""


class _Anything(RootModel[dict[str, Any]]):
    """A result that is not validated here."""


class ServerSession:
    """A session with one server. It starts at once; `ready` reports when it can be used, or why it can't.

    `hide` removes the server's secrets from its error messages.
    """

    def __init__(
        self,
        server: str,
        link: Link,
        incoming: IncomingMessages,
        timeout_s: float,
        limits: Limits,
        hide: Callable[[str], str],
        *,
        has_one_user: bool = False,
    ) -> None:
        self._server = server
        self._link = link
        self._incoming = incoming
        self._timeout_s = timeout_s
        self._limits = limits
        self._hide = hide
        self._has_one_user = has_one_user
        self._session: ClientSession | None = None
        self._tools: tuple[Tool, ...] = ()
        self._listed_at = 0.0
        self._tools_changed = False
        self._over = asyncio.Event()
        self._greeting: asyncio.Timeout | None = None
        self._closed: str | None = None
        self._calls: dict[OpenCall, asyncio.Task[None]] = {}
        self._check: asyncio.Task[None] | None = None
        self.start_number = 0  # greater than the number of every server started earlier on this node
        self.used_at = time.monotonic()
        self.failure: str | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with about():  # it outlives the turn that first needs it
            self.task = asyncio.create_task(self._hold())

    @property
    def is_open(self) -> bool:
        """Whether it can be used, or will be."""
        return not self._over.is_set()

    @property
    def is_ready(self) -> bool:
        """Whether it can be used now."""
        return self._session is not None and self.is_open

    @property
    def known_tools(self) -> tuple[Tool, ...]:
        """The tools that the server last listed."""
        return self._tools

    async def tools(self, *, refresh: bool = False) -> tuple[Tool, ...]:
        """The server's tools; fetched again after it reports a change, or after a while."""
        session = self._use()
        if refresh or self._tools_changed or time.monotonic() - self._listed_at > self._limits.tools_stay_s:
            try:
                async with asyncio.timeout(self._limits.ping_s):
                    await self._list(session)
            except (MCPError, ValidationError, TimeoutError) as exc:
                self._tools_changed = True  # as far as we know
                self._look_after()
                raise LinkBroken("It doesn't list its tools.") from exc
        return self._tools

    async def call(
        self, name: str, arguments: Mapping[str, Any], call_key: str = "", given: GivenInput | None = None
    ) -> AsyncGenerator[Step]:
        """Calls a tool: any number of Progress and Asked, then one Returned or InputRequired.

        Closing it cancels the call there too.
        """
        params: mcp.CallToolRequestParams | None = _params(name, arguments, call_key)
        if given is not None and (params := continued(params, given)) is None:
            yield Returned("denied", error="The user declined to open the address that the tool needs.")
            return
        call = OpenCall()
        task = self._calls[call] = asyncio.create_task(self._run(self._use(), call, params))
        task.add_done_callback(lambda _: self._calls.pop(call))
        try:
            while True:
                step = await call.steps.get()
                yield step
                if isinstance(step, Returned | InputRequired):
                    return
        finally:
            self.used_at = time.monotonic()
            call.end()
            if task.cancel():
                # Not awaited: notifying a server that does not listen may take a while.
                self._look_after()

    def end(self, reason: str) -> None:
        """Stops further use; waiting callers get the reason. `task` is done when the session has ended."""
        self._closed = self._closed or reason
        self._over.set()
        if self._greeting is not None and not self._greeting.expired():
            self._greeting.reschedule(asyncio.get_running_loop().time())

    async def close(self, reason: str) -> None:
        """Ends the session and the server."""
        self.end(reason)
        await asyncio.wait([self.task])

    def _use(self) -> ClientSession:
        self.used_at = time.monotonic()
        if self._session is None or not self.is_open:
            raise LinkBroken(self.failure or self._closed or "It has ended.")
        return self._session

    async def _hold(self) -> None:
        """Holds the session until either side ends it."""
        reason = "It has ended."
        try:
            async with (
                self._link.open(self._over.set) as (read, write),
                ClientSession(
                    read,
                    write,
                    message_handler=self._hear,
                    elicitation_callback=self._elicit,
                    client_info=_CLIENT,
                ) as session,
            ):
                await self._greet(session)
                self._session = session
                self.ready.set_result(None)
                await self._over.wait()
        except Exception as exc:  # noqa: BLE001 - a session ends here, and the reason is reported
            if self._closed is None:  # errors while we close it aren't failures
                reason = self._reason(exc)
        finally:
            self._over.set()
            if self._closed is None:
                self.failure = self._hide(self.failure or reason)
                # What it writes once it is in use may be a user's words; only its owner sees them.
                why = self.failure if not self.ready.done() else "it ended while in use"
                log.info("server %s: %s", self._server, why)
            if not self.ready.done():
                self.ready.set_exception(LinkBroken(self.failure or self._closed))
                self.ready.exception()  # mark as retrieved, in case nobody waits for it
            if self._check is not None:
                await end_tasks(self._check)

    async def _greet(self, session: ClientSession) -> None:
        if self._closed is not None:
            raise LinkBroken(self._closed)
        try:
            async with asyncio.timeout(self._limits.connect_s) as self._greeting:
                await _agree(session)
                await self._list(session)
        finally:
            self._greeting = None

    async def _hear(self, message: object) -> None:
        """Notes that the server's tools have changed."""
        if isinstance(message, mcp.ToolListChangedNotification):
            self._tools_changed = True

    async def _list(self, session: ClientSession) -> None:
        self._tools_changed = False
        listed: list[mcp.Tool] = []
        cursor: str | None = None
        while len(listed) < MOST_TOOLS:
            page = await session.list_tools(params=mcp.PaginatedRequestParams(cursor=cursor))
            listed += page.tools
            cursor = page.next_cursor
            if not cursor or not page.tools:
                break
        self._tools = tools_of(self._server, listed, self._timeout_s)
        self._listed_at = time.monotonic()

    async def _run(self, session: ClientSession, call: OpenCall, params: mcp.CallToolRequestParams) -> None:
        """One call, from the first byte to its last step."""
        # Messages on the stream of this call's own request are handled with this set.
        _call_here.set(call)
        try:
            step = await self._complete(session, call, params)
        except MCPError as exc:
            step = addresses_required(exc.error) or await self._what_broke(exc)
        except NotSupported as exc:
            step = Returned("error", error=str(exc))
        except ValueError:
            step = Returned("error", error="The server's response isn't a valid MCP result.")
        except Exception as exc:
            log.exception("calling %s on server %s failed", params.name, self._server)
            step = Returned("error", error=f"The tool failed: {type(exc).__name__}.", lost=True)
        call.steps.put_nowait(step)

    async def _complete(
        self, session: ClientSession, call: OpenCall, params: mcp.CallToolRequestParams
    ) -> InputRequired | Returned:
        """Repeats a call until it ends, or the user has to be asked."""
        for pause_s in _ROUND_PAUSES_S:
            # Not `call_tool`: it would validate the result against the server's own schema, whose patterns
            # can keep this process busy for as long as the server likes.
            result = await session.send_request(
                mcp.CallToolRequest(params=params), _Anything, progress_callback=_progress_reporter(call)
            )
            needed = input_required(result.root)
            if needed is None:
                return self._incoming.returned(result.root)
            if needed.requests:
                return needed
            # It has no question for the user: it wants to be called again.
            await asyncio.sleep(pause_s)
            params = continued(params, GivenInput(needed.state, {})) or params
        return Returned("error", error="The server keeps asking for the call to be repeated.")

    async def _elicit(
        self, context: ClientRequestContext, params: mcp.ElicitRequestParams
    ) -> mcp.ElicitResult:
        """Answers a server that asks the user while it holds a call open."""
        call, question = self._asking_call(), question_of(params)
        if call is None or question is None:
            return DECLINED
        asking = asyncio.create_task(call.ask(question))
        try:
            # A lost remote server sends nothing; checking ends a question that no longer matters.
            while not asking.done():
                done, _ = await asyncio.wait([asking], timeout=LOOK_EVERY_S)
                if not done:
                    self._look_after()
            return elicit_result(asking.result(), is_form=question.schema is not None)
        finally:
            asking.cancel()

    def _asking_call(self) -> OpenCall | None:
        """The call in which a server asks; None if it is unclear whose user is meant."""
        if (call := _call_here.get()) is not None:
            return call if call in self._calls else None
        return next(iter(self._calls)) if self._has_one_user and len(self._calls) == 1 else None

    async def _what_broke(self, exc: MCPError) -> Returned:
        """A protocol error with its reason; if the connection is lost, the reason for that."""
        if exc.code == NOT_ANSWERED:  # the session may be well
            self._look_after()
            return Returned("error", error=exc.message, lost=True)
        if exc.code != mcp.CONNECTION_CLOSED:
            self._look_after()
            return Returned("error", error=exc.message)
        await asyncio.wait([self.task], timeout=_ENDING_S)
        reason = self.failure or self._closed or exc.message
        return Returned("error", error=f"Lost the connection to the server. {reason}", lost=True)

    def _look_after(self) -> None:
        """Checks that a server is still alive after something went wrong."""
        if self.is_open and (self._check is None or self._check.done()):
            self._check = asyncio.create_task(self._ping())

    async def _ping(self) -> None:
        try:
            async with asyncio.timeout(self._limits.ping_s):
                await self._use().send_ping()
        except (LinkBroken, ValidationError):
            return  # it has ended already; or it did answer, if badly
        except TimeoutError:
            self._fail("It stopped responding.")
        except MCPError as exc:
            if exc.code != mcp.METHOD_NOT_FOUND:
                self._fail(exc.message)

    def _fail(self, reason: str) -> None:
        """Ends a broken session; one that is being closed has not failed."""
        if self.is_open:
            self.failure = reason
            self._over.set()

    def _reason(self, exc: BaseException) -> str:
        """Why a session ended, for people."""
        match cause := next(causes(exc)):
            case LinkBroken():
                return str(cause)
            case TimeoutError():
                return f"It didn't respond within {self._limits.connect_s:g} seconds."
            case MCPError(code=mcp.PARSE_ERROR):  # in our own words
                return cause.message
            case MCPError():
                return f"It refused: {cause.message}"
            case ValidationError():
                return "Its response isn't valid MCP."
            case _:
                log.warning("the session with server %s failed", self._server, exc_info=cause)
                return f"The session broke: {type(cause).__name__}."


def _progress_reporter(call: OpenCall) -> ProgressFnT:
    """Reports a call's progress to its caller, now and then."""
    reported_at = 0.0

    async def report(progress: float, total: float | None, message: str | None) -> None:
        nonlocal reported_at
        if (now := time.monotonic()) - reported_at >= _PROGRESS_EVERY_S:
            reported_at = now
            call.steps.put_nowait(Progress(progress, total, message))

    return report


def _params(name: str, arguments: Mapping[str, Any], call_key: str) -> mcp.CallToolRequestParams:
    meta: mcp.RequestParamsMeta | None = {IDEMPOTENCY_KEY: call_key} if call_key else None
    return mcp.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=meta)


async def _agree(session: ClientSession) -> None:
    """Agrees on a version: by the handshake that all servers know, else by the newer one."""
    try:
        await session.initialize()
    except MCPError as exc:
        if exc.code not in (mcp.METHOD_NOT_FOUND, mcp.UNSUPPORTED_PROTOCOL_VERSION):
            raise
        await session.discover()
