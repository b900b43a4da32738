"""How people sign in with a browser, and what an admin does with them."""

from tests.corpus.stage import ADMIN, Stage

ORIGIN = "https://chat.example"
PAGE = {
    "Host": "chat.example",
    "Origin": ORIGIN,
    "Sec-Fetch-Site": "same-origin",
    "User-Agent": "A browser",
}


async def sign_in(stage: Stage) -> None:
    """An invitation that becomes a session, which is listed and ended."""
    await stage.call("GET /api/sign-in", user=None)
    invite = "POST /api/admin/invitations"
    await stage.call(invite, body={"user": "ann"})
    url = (await stage.call(invite, body={"user": "ann"}, user=ADMIN)).json()["url"]
    await stage.call(invite, body={"user": "eve"}, user=ADMIN)
    invitations = (await stage.call("GET /api/admin/invitations", user=ADMIN)).json()["items"]
    withdrawn = next(it["id"] for it in invitations if it["userId"] == "invited:eve")
    withdraw = "DELETE /api/admin/invitations/{invitation_id}"
    await stage.call(withdraw, invitation_id=withdrawn, user=ADMIN)
    await stage.call(withdraw, invitation_id=withdrawn, user=ADMIN)
    link = {"token": url.rpartition("/")[2]}
    await stage.call("POST /api/sign-in/invitation", user=None, body=link, headers=PAGE)
    accept = "POST /api/sign-in/invitation/accept"
    await stage.call(accept, user=None, body=link, headers=PAGE | {"Origin": "https://evil.example"})
    accepted = await stage.call(accept, user=None, body=link, headers=PAGE)
    await stage.call(accept, user=None, body=link, headers=PAGE)
    browser = PAGE | {"Cookie": accepted.headers["set-cookie"].partition(";")[0]}
    await stage.call("GET /api/me", user=None, headers=browser)
    sessions = (await stage.call("GET /api/me/sessions", user=None, headers=browser)).json()["items"]
    await stage.call("POST /api/me/sessions/links", user=None, headers=browser)
    end = "DELETE /api/me/sessions/{session_id}"
    await stage.call(end, user=None, session_id=ADMIN, headers=browser)
    await stage.call(end, user=None, session_id=sessions[0]["id"], headers=browser)
    await stage.call("GET /api/me", user=None, headers=browser)
    await stage.call("DELETE /api/me/sessions")


async def people(stage: Stage) -> None:
    """Users whom an admin sees, suspends and lets in again; and what everybody had as `local`."""
    for user in ("alice", ADMIN):
        await stage.quietly("GET", "/api/me", user)
    await stage.call("GET /api/admin/users")
    await stage.call("GET /api/admin/users", user=ADMIN)
    for change in ("suspend", "unsuspend"):
        await stage.call(f"POST /api/admin/users/{{user_id}}/{change}", user_id="alice", user=ADMIN)
        await stage.call("GET /api/me")
    await stage.call("POST /api/admin/users/{user_id}/suspend", user_id=ADMIN, user=ADMIN)
    await stage.call("POST /api/admin/reassign-local")
    await stage.call("POST /api/admin/reassign-local", user=ADMIN)


SCENARIOS = (sign_in, people)
SETTINGS = {"sign-in": {"invitations": "on", "public_url": ORIGIN}}
