"""What everybody had as `local` goes to the admin who takes it over, once."""

import asyncio

from tests.conftest import Api
from tests.http.calls import items, refusal
from tests.making import keep_agent, keep_begun, keep_conversation, keep_memory, keep_turn
from threadkeep.clock import system_clock
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import LOCAL

TAKE = "/api/admin/reassign-local"
NOTHING = {"conversations": 0, "agents": 0, "briefings": 0, "memories": 0}


async def test_admin_takes_over_once_what_local_had(api: Api):
    admin, user = api.as_user("root", admin=True), api.as_user("ann")
    assert "reassignable" not in (await admin.get("/api/me")).json()
    assert (await admin.post(TAKE)).json() == NOTHING  # there never was anybody `local`
    agent = await keep_agent(api.store, LOCAL)
    conversation = await keep_conversation(api.store, agent, LOCAL, title="Lease")
    await keep_turn(api.store, conversation, "What of my lease?", "It ends in May.")
    await keep_memory(api.store, agent.id, "Has a cat.", LOCAL)
    left = {"conversations": 1, "agents": 1, "briefings": 0, "memories": 1}
    assert (await admin.get("/api/me")).json()["reassignable"] == left
    assert "reassignable" not in (await user.get("/api/me")).json()
    refusal(await user.post(TAKE), 403, "FORBIDDEN")
    assert (await admin.post(TAKE)).json() == left
    assert (await admin.post(TAKE)).json() == NOTHING
    assert "reassignable" not in (await admin.get("/api/me")).json()
    assert [it["title"] for it in await items(admin, "/api/conversations")] == ["Lease"]
    audit = [it for it in await items(admin, "/api/admin/audit") if it["action"] == "reassign_user"]
    assert [(it["actorId"], it["details"]) for it in audit] == [
        ("root", {"giver": "local", "receiver": "root"})
    ]


async def test_nothing_moves_while_an_agent_replies_to_local(api: Api):
    admin = api.as_user("root", admin=True)
    agent = await keep_agent(api.store, LOCAL)
    conversation = await keep_conversation(api.store, agent, LOCAL)
    begun = conversation.begin_turn("Hello?", system_clock())
    await keep_begun(api.store, begun)
    error = refusal(await admin.post(TAKE), 409, "TURN_IN_PROGRESS")
    assert error["details"] == {"turnId": begun.turn.id}
    assert await api.store.conversations.get(LOCAL, conversation.id)


async def test_what_moved_is_found_beside_ones_own(api: Api):
    root, admin = UserId("root"), api.as_user("root", admin=True)
    agent = await keep_agent(api.store, LOCAL)
    for owner, title in ((LOCAL, "Lease"), (root, "My own")):
        conversation = await keep_conversation(api.store, agent, owner, title=title)
        await keep_turn(api.store, conversation, "What of my lease?", "It ends in May.")
        await api.store.history.follow(conversation.id, limit=100)
    await admin.post(TAKE)
    # It is indexed by itself, without waiting for the next start.
    while await api.store.history.behind(after=None, limit=1):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    found = (await admin.get("/api/search", params={"q": "lease"})).json()["items"]
    assert len({it["conversationId"] for it in found}) == 2
