"""What a session has open is its own page's, and ends soon after it, on every node, however it was ended."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.http.sign_in.test_keys import REVOCATION_S, ended
from tests.http.sign_in.test_sessions import ORIGIN, PAGE, settings_for
from tests.protocols.agentx.client import AgentXClient, agentx
from tests.talking import Talk, talking
from threadkeep.clock import system_clock
from threadkeep.domain.ids import SessionId, UserId, new_uuid
from threadkeep.domain.sign_in.session import INVITATION, SignedIn
from threadkeep.domain.user import User, UserRole
from threadkeep.ports.sign_in import check_every_s
from threadkeep.services.sign_in.sessions import KNOWN_FOR_S

HOST = urlsplit(ORIGIN).netloc


def test_end_of_a_session_reaches_every_stream_in_time():
    ann = User(UserId("invited:ann"), session_id=SessionId(new_uuid()))
    assert check_every_s(ann) + KNOWN_FOR_S < REVOCATION_S


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks and what is remembered, many times as fast."""
    monkeypatch.setattr("threadkeep.ports.sign_in.CHECK_KEY_EVERY_S", 0.02)
    monkeypatch.setattr("threadkeep.services.sign_in.sessions.KNOWN_FOR_S", 0.02)


@dataclass(frozen=True)
class Browser:
    """A browser in which somebody has signed in, with a stream and a socket open at one node."""

    session_id: SessionId
    cookie: dict[str, str]
    headers: dict[str, str]
    events: httpx.Response
    socket: AgentXClient

    async def is_cut_off(self) -> None:
        """Until all that it has open is closed."""
        await asyncio.gather(ended(self.events), self.socket.until(lambda: self.socket.close_code == 1008))

    async def goes_on(self) -> None:
        assert "error" not in await self.socket.request("container_list")
        assert not self.events.is_closed


def socket_of(
    talk: Talk, cookie: dict[str, str], **options: Any
) -> AbstractAsyncContextManager[AgentXClient]:
    """A socket at the address that people know, as a proxy passes it on."""
    there = urlsplit(talk.url)
    known = replace(talk, url=f"http://{HOST}")
    return agentx(known, host=there.hostname, port=there.port, additional_headers=cookie, **options)


@asynccontextmanager
async def browser(talk: Talk, user: str) -> AsyncGenerator[Browser]:
    signed = SignedIn(id=UserId(user), role=UserRole.USER)
    started = await (await talk.app.services()).sessions.start(signed, INVITATION, "browser", system_clock())
    cookie = {"Cookie": f"__Host-threadkeep-{talk.store.installation[:8]}={started.token}"}
    headers = {**PAGE, **cookie, "Host": HOST}
    async with (
        socket_of(talk, cookie, origin=ORIGIN) as opened,
        talk.client.stream("GET", "/api/me/events", headers=headers) as events,
    ):
        assert events.status_code == 200
        yield Browser(started.session.id, cookie, headers, events, opened)


@pytest.mark.usefixtures("soon")
async def test_streams_and_sockets_of_an_ended_session_close_on_every_node(database_url: str, tmp_path: Path):
    """With SQLite, there is only one."""
    is_sqlite = database_url.startswith("sqlite")
    async with AsyncExitStack() as opened:
        here = await opened.enter_async_context(talking(settings_for(database_url, tmp_path / "here")))
        elsewhere = talking(settings_for(database_url, tmp_path / "there"))
        there = here if is_sqlite else await opened.enter_async_context(elsewhere)
        laptop, phone, tablet, bob = [
            await opened.enter_async_context(browser(node, user))
            for node, user in ((there, "ann"), (here, "ann"), (there, "ann"), (there, "bob"))
        ]
        for it in (laptop, phone, tablet, bob):
            await it.goes_on()
        gone = await here.client.delete(f"/api/me/sessions/{laptop.session_id}", headers=phone.headers)
        assert gone.status_code == 204
        await laptop.is_cut_off()
        for it in (phone, tablet, bob):
            await it.goes_on()
        assert (await here.client.delete("/api/me/sessions", headers=phone.headers)).status_code == 204
        await asyncio.gather(phone.is_cut_off(), tablet.is_cut_off())
        await bob.goes_on()


async def test_cookie_opens_no_socket_for_another_page(database_url: str, tmp_path: Path):
    """A browser sends it along with whatever page opens one: it is refused there, or stays nobody's."""
    async with talking(settings_for(database_url, tmp_path / "data")) as talk, browser(talk, "ann") as ann:
        await ann.goes_on()
        for origin in ("https://evil.example", f"{ORIGIN}:8443", "http://localhost:3000", "null"):
            with pytest.raises(InvalidStatus):
                async with socket_of(talk, ann.cookie, origin=origin):
                    pass
        # A listed origin may open one, and so may a program: not as her.
        for options in (
            {"origin": "https://app.example"},
            {},
            {"origin": ORIGIN, "subprotocols": ["bearer.x"]},
        ):
            async with socket_of(talk, ann.cookie, **options) as socket:
                assert "error" in await socket.request("container_list"), options
        async with socket_of(talk, ann.cookie, origin=ORIGIN) as socket:
            assert "error" not in await socket.request("container_list")
