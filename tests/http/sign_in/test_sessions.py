"""People sign in with an invitation, in a browser, and a cookie counts only for our own page."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, SECRET, Api, secret_key_for
from tests.http.calls import refusal
from tests.http.checked import CheckedApi
from threadkeep import Settings, create_app
from threadkeep.clock import system_clock
from threadkeep.domain.ids import UserId
from threadkeep.domain.sign_in.public_url import PublicUrl
from threadkeep.domain.sign_in.session import INVITATION, INVITATION_S, SignedIn, SignInRules
from threadkeep.domain.user import UserRole
from threadkeep.services.sign_in.invitations import Invitations
from threadkeep.services.sign_in.sessions import Sessions

ORIGIN = "https://chat.example"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
PAGE = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}


def settings_for(database_url: str, data: Path, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "invitations": "on",
        "public_url": ORIGIN,
        "jwt_secret": SECRET,
        "data": data,
        "database_url": database_url,
        "secret_key": secret_key_for(database_url),
        "gateway": "openai",
        "embedding_url": "off",
        "cors_origins": "https://app.example",
    }
    return Settings.load({}, **given | more)


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    """Threadkeep whose people sign in with a browser, and programs with tokens."""
    app = create_app(settings_for(database_url, tmp_path / "data"))
    async with app.lifespan():
        api = CheckedApi(app, (await app.services()).store, [])
        yield api
        for client in api.clients:
            await client.aclose()


def browser(api: Api, **headers: str) -> httpx.AsyncClient:
    """A browser with cookies of its own, on our page unless the headers say otherwise."""
    client = api.client(**PAGE | headers)
    client.base_url = ORIGIN
    return client


async def invite(api: Api, user: str = "ann", **body: Any) -> str:
    """The token in a new invitation's link."""
    admin = api.as_user("root", admin=True)
    response = await admin.post("/api/admin/invitations", json={"user": user, **body})
    assert response.status_code == 201, response.text
    start, token = response.json()["url"].split("/#/invitation/")
    assert start == ORIGIN
    return token


async def accept(client: httpx.AsyncClient, token: str, **body: Any) -> httpx.Response:
    return await client.post("/api/sign-in/invitation/accept", json={"token": token, **body})


async def signed_in(api: Api, user: str = "ann", **body: Any) -> httpx.AsyncClient:
    """A browser in which somebody has accepted an invitation."""
    client = browser(api)
    response = await accept(client, await invite(api, user, **body))
    assert response.status_code == 200, response.text
    return client


def cookie_of(client: httpx.AsyncClient) -> dict[str, str]:
    ((name, value),) = client.cookies.items()
    return {"Cookie": f"{name}={value}"}


async def test_invitation_signs_in_once_and_only_after_a_click(api: Api):
    token = await invite(api, admin=True)
    ann = browser(api)
    ways = (await ann.get("/api/sign-in")).json()
    assert ways == {"ways": [], "invitations": True, "tokens": True}
    for _ in range(2):  # looking changes nothing
        offer = (await ann.post("/api/sign-in/invitation", json={"token": token})).json()
        assert (offer["userId"], offer["role"], offer["invitedBy"]) == ("invited:ann", "admin", "root")
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")
    accepted = await accept(ann, token)
    assert accepted.json() == {"id": "invited:ann", "role": "admin"}
    header = accepted.headers["set-cookie"]
    assert header.startswith(f"__Host-threadkeep-{api.store.installation[:8]}=")
    assert {"Path=/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(header.split("; "))
    assert token not in header
    me = (await ann.get("/api/me")).json()
    assert (me["id"], me["role"], me["name"]) == ("invited:ann", "admin", "ann")
    # Not again, by nobody.
    refusal(await accept(browser(api), token), 410, "INVITATION_ENDED")
    refusal(await accept(browser(api), token[:-1] + "_"), 404, "INVITATION_NOT_FOUND")
    actions = [it["action"] for it in (await ann.get("/api/admin/audit")).json()["items"]]
    assert actions == ["accept_invitation", "create_invitation"]


async def test_invitation_that_many_accept_at_the_same_time_signs_in_one_of_them(api: Api):
    token = await invite(api)
    browsers = [browser(api) for _ in range(5)]
    answers = await asyncio.gather(*(accept(it, token) for it in browsers))
    assert sorted(it.status_code for it in answers) == [200, 410, 410, 410, 410]
    for client, response in zip(browsers, answers, strict=True):
        if response.status_code == 200:
            (session,) = (await client.get("/api/me/sessions")).json()["items"]
            assert session["current"]
        else:
            assert "used already" in refusal(response, 410, "INVITATION_ENDED")["message"]
            assert not client.cookies
    audit = (await api.as_user("root", admin=True).get("/api/admin/audit")).json()["items"]
    assert [it["action"] for it in audit] == ["accept_invitation", "create_invitation"]


async def test_invitation_never_switches_a_browsers_account_silently(api: Api):
    bob = await signed_in(api, "bob")
    token = await invite(api, "ann")
    offer = (await bob.post("/api/sign-in/invitation", json={"token": token})).json()
    assert (offer["userId"], offer["signedInAs"]) == ("invited:ann", "invited:bob")
    error = refusal(await accept(bob, token), 409, "OTHER_USER_SIGNED_IN")
    assert error["details"] == {"userId": "invited:bob"}
    before = cookie_of(bob)
    assert (await bob.get("/api/me")).json()["id"] == "invited:bob"
    assert (await accept(bob, token, switch=True)).json()["id"] == "invited:ann"
    assert (await bob.get("/api/me")).json()["id"] == "invited:ann"
    # The session of before is over, whoever has kept its cookie.
    refusal(await browser(api, **before).get("/api/me"), 401, "UNAUTHENTICATED")


async def test_new_invitation_replaces_links_and_ends_other_sessions(api: Api):
    stolen = await signed_in(api)
    unused = await invite(api)
    ann = await signed_in(api)  # the same user once more
    refusal(await accept(browser(api), unused), 404, "INVITATION_NOT_FOUND")
    refusal(await stolen.get("/api/me"), 401, "UNAUTHENTICATED")
    (session,) = (await ann.get("/api/me/sessions")).json()["items"]
    assert (session["way"], session["current"]) == ("invitation", True)


async def test_invitation_takes_over_nobody_whom_no_invitation_made(api: Api):
    assert (await api.as_user("invited:eve").get("/api/me")).status_code == 200  # another issuer's name
    admin = api.as_user("root", admin=True)
    response = await admin.post("/api/admin/invitations", json={"user": "eve"})
    refusal(response, 403, "FORBIDDEN", "user")
    token = await invite(api, "mallory")
    await api.as_user("invited:mallory").get("/api/me")
    refusal(await accept(browser(api), token), 403, "FORBIDDEN", "user")
    for name in ("", " ann", "a\nb", "x" * 101):
        response = await admin.post("/api/admin/invitations", json={"user": name})
        refusal(response, 422, "INVALID_REQUEST", "user")
    response = await api.as_user("ann").post("/api/admin/invitations", json={"user": "x"})
    refusal(response, 403, "FORBIDDEN")


async def test_first_admin_is_invited_once_by_all_nodes_that_start_together(api: Api):
    rules = SignInRules(public_url=PublicUrl.read(ORIGIN), invitations=True)
    now = [system_clock()]
    invitations = Invitations(api.store, Sessions(api.store, lambda: now[0]), rules, lambda: now[0])
    made = await asyncio.gather(*(invitations.create_first("admin") for _ in range(5)))
    (first,) = [it.url for it in made if it is not None]
    now[0] += INVITATION_S * 1000
    again = await invitations.create_first("admin")  # the first one has expired
    assert again is not None
    assert again.url != first
    accepted = await accept(browser(api), again.url.partition("/#/invitation/")[2])
    assert accepted.json() == {"id": "invited:admin", "role": "admin"}
    assert await invitations.create_first("other") is None


async def test_invitation_is_over_after_a_day(api: Api):
    rules = SignInRules(public_url=PublicUrl.read(ORIGIN), invitations=True)

    def yesterday() -> int:
        return system_clock() - INVITATION_S * 1000

    made = await Invitations(api.store, Sessions(api.store, yesterday), rules, yesterday).create_first("late")
    assert made is not None
    response = await accept(browser(api), made.url.partition("/#/invitation/")[2])
    assert "expired" in refusal(response, 410, "INVITATION_ENDED")["message"]


@ONLY_SQLITE
async def test_cookie_counts_only_for_our_own_page(api: Api):
    ann = await signed_in(api)
    cookie = cookie_of(ann)

    def asking(**headers: str) -> httpx.AsyncClient:
        client = api.client(**cookie | headers)
        client.base_url = ORIGIN
        return client

    reads = {
        "same-origin": 200, "none": 403, "same-site": 403, "cross-site": 403,
    }  # fmt: skip
    for site, status in reads.items():
        assert (await asking(**{"Sec-Fetch-Site": site}).get("/api/me")).status_code == status, site
    refusal(await asking().get("/api/me"), 403, "FORBIDDEN", "Origin")
    assert (await asking(Origin=ORIGIN).get("/api/me")).status_code == 200  # an older browser
    # Writes, from wherever: other sites, other ports, http, a listed origin, and without any.
    others = ["https://evil.example", f"{ORIGIN}:8443", "http://chat.example", "https://app.example", "null"]
    for origin in others:
        response = await asking(Origin=origin, **{"Sec-Fetch-Site": "same-origin"}).delete("/api/me/sessions")
        refusal(response, 403, "FORBIDDEN", "Origin")
    response = await asking(**{"Sec-Fetch-Site": "same-origin"}).delete("/api/me/sessions")
    refusal(response, 403, "FORBIDDEN", "Origin")
    # A listed origin may ask, but is never told that it may send cookies.
    response = await asking(Origin="https://app.example").get("/api/me")
    refusal(response, 403, "FORBIDDEN", "Origin")
    assert "access-control-allow-credentials" not in response.headers
    # Nor can anybody else's page sign a browser in.
    token = await invite(api, "eve")
    for origin in others:
        refusal(await accept(browser(api, Origin=origin), token), 403, "FORBIDDEN", "Origin")
    assert (await ann.get("/api/me")).json()["id"] == "invited:ann"


LOCAL_PAGE = "http://localhost:8710"


@ONLY_SQLITE
async def test_page_on_another_port_of_localhost_neither_reads_nor_writes(database_url: str, tmp_path: Path):
    """A browser sends it the cookie, which knows no ports."""
    app = create_app(settings_for(database_url, tmp_path / "data", public_url=LOCAL_PAGE))
    async with app.lifespan():
        services = await app.services()
        ann = SignedIn(id=UserId("invited:ann"), role=UserRole.USER)
        started = await services.sessions.start(ann, INVITATION, "browser", system_clock())
        cookie = f"threadkeep-{services.store.installation[:8]}={started.token}"

        async def status(method: str, path: str, *headers: dict[str, str]) -> int:
            sent = {"Cookie": cookie} | {name: it for given in headers for name, it in given.items()}
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOCAL_PAGE) as client:
                response = await client.request(method, path, headers=sent)
            assert "access-control-allow-origin" not in response.headers
            return response.status_code

        own, neighbour = {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "same-site"}
        unknown = f"/api/me/sessions/{UNKNOWN}"
        assert await status("GET", "/api/me", own) == 200
        assert await status("DELETE", unknown, {"Origin": LOCAL_PAGE}, own) == 404
        ports = ["http://localhost:3000", "http://localhost", "https://localhost:8710"]
        for origin in (*ports, "http://127.0.0.1:8710", "null"):
            for more in (neighbour, {}):  # older browsers say less
                for method, path in (("DELETE", unknown), ("POST", "/api/agents"), ("GET", "/api/me")):
                    assert await status(method, path, {"Origin": origin}, more) == 403, (origin, method)
        # An image, a script or a form of that page: browsers may send no `Origin` for it.
        for more in (neighbour, {}):
            for path in ("/api/me", "/api/conversations", f"/api/files/{UNKNOWN}"):
                assert await status("GET", path, more) == 403, path
            assert await status("POST", "/api/agents", more) == 403
        # A link from there opens the page, and nothing else.
        clicked = neighbour | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert await status("GET", "/", clicked) != 403
        assert await status("GET", "/api/me", clicked) == 403
        assert await status("GET", "/api/me", own) == 200


@ONLY_SQLITE
async def test_cookie_counts_where_nothing_else_signs_in(api: Api):
    ann = await signed_in(api)
    bob = api.as_user("bob").headers["authorization"]
    assert (await ann.get("/api/me", headers={"Authorization": bob})).json()["id"] == "bob"
    for header in ({"Authorization": "Bearer x"}, {"x-api-key": "x"}, {"Authorization": ""}):
        refusal(await ann.get("/api/me", headers=header), 401, "UNAUTHENTICATED")
    for path in ("/v1/models", "/api/runs", "/api/workers", "/api/hooks/x"):
        assert (await ann.get(path)).status_code in {401, 404}, path
    response = await ann.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert response.status_code == 401
    files = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    refusal(await ann.get(f"/api/files/{UNKNOWN}", headers=files), 404, "FILE_NOT_FOUND")
    refusal(await ann.get("/api/conversations", headers=files), 403, "FORBIDDEN", "Sec-Fetch-Site")
    # Another server on this machine, whose cookies a browser sends, too.
    name = f"__Host-threadkeep-{'0' * 8}"
    refusal(await browser(api, Cookie=f"{name}=x").get("/api/me"), 401, "UNAUTHENTICATED")
    for garbage in ("", "x", "é", "a" * 5000):
        value = f"__Host-threadkeep-{api.store.installation[:8]}={garbage}".encode()
        response = await browser(api).get("/api/me", headers=[(b"cookie", value)])
        refusal(response, 401, "UNAUTHENTICATED")


async def test_person_sees_and_ends_their_sessions(api: Api):
    laptop = await signed_in(api)
    bob = await signed_in(api, "bob")
    (session,) = (await laptop.get("/api/me/sessions")).json()["items"]
    refusal(await bob.delete(f"/api/me/sessions/{session['id']}"), 404, "SESSION_NOT_FOUND")
    refusal(await laptop.delete("/api/me/sessions/x"), 404, "SESSION_NOT_FOUND")
    kept = cookie_of(laptop)
    ended = await laptop.delete("/api/me/sessions/current")
    assert ended.status_code == 204
    assert "Max-Age=0" in ended.headers["set-cookie"]
    assert not laptop.cookies
    refusal(await browser(api, **kept).get("/api/me"), 401, "UNAUTHENTICATED")
    kept = cookie_of(bob)
    assert (await bob.delete("/api/me/sessions")).status_code == 204
    refusal(await browser(api, **kept).get("/api/me"), 401, "UNAUTHENTICATED")


async def test_suspended_user_can_do_nothing_until_an_admin_says_so(api: Api):
    ann, token_user = await signed_in(api), api.as_user("carl")
    made = await ann.post("/api/keys", json={"name": "k", "scopes": ["read"]})
    program = api.client(Authorization=f"Bearer {made.json()['key']}")
    await token_user.get("/api/me")
    admin, again = api.as_user("root", admin=True), await invite(api)
    for user in ("invited:ann", "carl"):
        suspended = (await admin.post(f"/api/admin/users/{user}/suspend")).json()
        assert suspended["suspendedAt"]
    for client in (ann, program, token_user):
        error = refusal(await client.get("/api/conversations"), 401, "UNAUTHENTICATED")
        if client is not program:  # what is open says why it has stopped
            assert error["details"] == {"suspendedBy": "admin"}
    refusal(await accept(browser(api), again), 403, "FORBIDDEN")
    for user in ("invited:ann", "carl"):
        assert "suspendedAt" not in (await admin.post(f"/api/admin/users/{user}/unsuspend")).json()
    for client in (program, token_user):
        assert (await client.get("/api/conversations")).status_code == 200
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")  # the session is over; the link is good again
    assert (await accept(ann, again)).status_code == 200
    refusal(await admin.post("/api/admin/users/root/suspend"), 422, "INVALID_REQUEST", "user_id")
    refusal(await admin.post("/api/admin/users/nobody/suspend"), 404, "USER_NOT_FOUND")
    refusal(await ann.post("/api/admin/users/root/suspend"), 403, "FORBIDDEN")
    known = {it["id"]: it for it in (await admin.get("/api/admin/users")).json()["items"]}
    assert (known["invited:ann"]["invited"], known["invited:ann"]["role"]) == (True, "user")
    assert known["invited:ann"]["lastSeenAt"]


async def own_link(client: httpx.AsyncClient) -> str:
    """The token in a link that somebody makes for another browser of theirs."""
    response = await client.post("/api/me/sessions/links")
    assert response.status_code == 201, response.text
    return response.json()["url"].partition("/#/invitation/")[2]


async def test_invited_person_signs_in_with_another_browser_too(api: Api):
    laptop, phone = await signed_in(api, admin=True), browser(api)
    replaced, token = await own_link(laptop), await own_link(laptop)
    assert "expired" in refusal(await accept(phone, replaced), 410, "INVITATION_ENDED")["message"]
    offer = (await phone.post("/api/sign-in/invitation", json={"token": token})).json()
    assert (offer["userId"], offer["endsSessions"]) == ("invited:ann", False)
    assert "invitedBy" not in offer
    admin = api.as_user("root", admin=True)
    assert (await admin.get("/api/admin/invitations")).json()["items"] == []  # she is here already
    bob = await signed_in(api, "bob")
    refusal(await accept(bob, token), 409, "OTHER_USER_SIGNED_IN")
    assert (await accept(phone, token)).json() == {"id": "invited:ann", "role": "admin"}
    refusal(await accept(browser(api), token), 410, "INVITATION_ENDED")
    for client in (laptop, phone):
        assert len((await client.get("/api/me/sessions")).json()["items"]) == 2
    audit = [
        it for it in (await admin.get("/api/admin/audit")).json()["items"] if it["actorId"] == "invited:ann"
    ]
    marks = [(it["action"], it["details"].get("forOtherBrowser")) for it in audit]
    assert marks[:3] == [
        ("accept_invitation", True),
        ("create_invitation", True),
        ("create_invitation", True),
    ]
    # An admin's link still ends them all, and the links that they have made.
    new_way_in = await invite(api)
    made = await own_link(phone)
    assert (await accept(browser(api), new_way_in)).status_code == 200
    refusal(await phone.get("/api/me"), 401, "UNAUTHENTICATED")
    refusal(await accept(browser(api), made), 410, "INVITATION_ENDED")


async def test_link_for_another_browser_ends_with_any_session_and_gives_no_lost_role(api: Api):
    laptop, phone = await signed_in(api, admin=True), browser(api)
    await accept(phone, await own_link(laptop))
    stolen = await own_link(phone)
    (theirs,) = [it for it in (await laptop.get("/api/me/sessions")).json()["items"] if not it["current"]]
    assert (await laptop.delete(f"/api/me/sessions/{theirs['id']}")).status_code == 204
    refusal(await accept(browser(api), stolen), 410, "INVITATION_ENDED")
    stolen = await own_link(laptop)
    assert (await laptop.delete("/api/me/sessions")).status_code == 204
    refusal(await accept(browser(api), stolen), 410, "INVITATION_ENDED")
    # What is asked counts, not what was when the link was made.
    again = await signed_in(api, admin=True)
    token = await own_link(again)
    user = SignedIn(id=UserId("invited:ann"), role=UserRole.USER)
    await Sessions(api.store, system_clock).start(user, INVITATION, "another", system_clock())
    assert (await accept(phone, token)).json()["role"] == "user"


async def test_only_an_invited_persons_browser_makes_links_and_not_many(api: Api):
    ann = await signed_in(api)
    key = (await ann.post("/api/keys", json={"name": "k", "scopes": ["admin"]})).json()["key"]
    carl = await Sessions(api.store, system_clock).start(
        SignedIn(id=UserId("work|carl"), role=UserRole.USER), "oidc:work", "browser", system_clock()
    )
    by_provider = browser(api, Cookie=f"{next(iter(ann.cookies))}={carl.token}")
    others = [api.client(Authorization=f"Bearer {key}"), api.as_user("bob", admin=True), by_provider]
    for client in others:
        refusal(await client.post("/api/me/sessions/links"), 403, "FORBIDDEN")
    elsewhere = await ann.post("/api/me/sessions/links", headers={"Origin": "https://evil.example"})
    refusal(elsewhere, 403, "FORBIDDEN", "Origin")
    made = await asyncio.gather(*(ann.post("/api/me/sessions/links") for _ in range(12)))
    assert sorted(it.status_code for it in made) == [201] * 10 + [429] * 2
    refused = await ann.post("/api/me/sessions/links")
    assert refusal(refused, 429, "RATE_LIMITED")["details"] == {"limit": "signInLinks", "most": 10}
    assert 3000 < int(refused.headers["retry-after"]) <= 3600
    root = await signed_in(api, "root", admin=True)
    response = await root.post("/api/admin/invitations", json={"user": "root"})
    refusal(response, 422, "INVALID_REQUEST", "user")


async def test_deleted_user_is_out_and_can_be_invited_anew(api: Api):
    ann, unused = await signed_in(api), await invite(api)
    assert (await ann.delete("/api/users/invited:ann")).status_code == 204
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")
    refusal(await accept(browser(api), unused), 404, "INVITATION_NOT_FOUND")
    again = await signed_in(api)
    assert (await again.get("/api/me")).json()["id"] == "invited:ann"
    admin = api.as_user("root", admin=True)
    refusal(await api.as_user("bob").delete("/api/users/invited:ann"), 404, "USER_NOT_FOUND")
    assert (await admin.delete("/api/users/invited:ann")).status_code == 204
    refusal(await again.get("/api/me"), 401, "UNAUTHENTICATED")
    refusal(await admin.delete("/api/users/nobody"), 404, "USER_NOT_FOUND")
    (noted,) = [
        it for it in (await admin.get("/api/admin/audit")).json()["items"] if it["action"] == "delete_user"
    ]
    assert noted["actorId"] == "root"
    assert "ann" not in str(noted["details"])


@ONLY_SQLITE
async def test_address_that_guesses_links_has_to_wait(api: Api):
    stranger, token = browser(api), await invite(api)
    for _ in range(20):
        refusal(await accept(stranger, UNKNOWN), 404, "INVITATION_NOT_FOUND")
    refusal(await accept(stranger, token), 429, "RATE_LIMITED")
