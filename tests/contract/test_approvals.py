"""What turns ask their users, on both databases."""

from tests.making import ALICE, NOW, keep_ended
from tests.services.running import begin
from threadkeep.domain.approval import Approval, ApprovalAction, ApprovalKind, Decision
from threadkeep.domain.conversation import BegunTurn
from threadkeep.domain.ids import new_uuid
from threadkeep.domain.message import MessageStatus
from threadkeep.domain.turn import Lease, TurnStatus
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store
from threadkeep.storage.turns import LEASE_MS

OPEN = Statement("SELECT id FROM tk_approvals WHERE answered_at IS NULL")
LEASE = Lease("a-node", 1, LEASE_MS)
ALLOW = Decision(action=ApprovalAction.ALLOW, at=NOW)
EXPIRE = Decision(action=ApprovalAction.EXPIRE, at=NOW)


async def ask(store: Store, begun: BegunTurn, expires_at: int = NOW + 1000) -> str:
    request_id = new_uuid()
    approval = Approval(
        request_id=request_id,
        turn_id=begun.turn.id,
        conversation_id=begun.conversation.id,
        kind=ApprovalKind.TOOL,
        message="Call it?",
        created_at=NOW,
        expires_at=expires_at,
    )
    await store.approvals.add(approval)
    return request_id


async def open_requests(store: Store) -> list[str]:
    return [it.request_id for it in await store.approvals.open_of(ALICE)]


async def test_request_that_is_withdrawn_is_neither_listed_nor_decided_nor_expires(store: Store):
    begun = await begin(store, LEASE)
    over, other = await ask(store, begun, expires_at=NOW), await ask(store, begun)
    assert await store.approvals.withdraw(begun.turn.id, over, EXPIRE)
    assert not await store.approvals.withdraw(begun.turn.id, over, EXPIRE)
    assert await open_requests(store) == [other]
    assert await store.log.pause(begun.turn.id, 1, [other]) == "paused"
    assert await store.approvals.expired(NOW, limit=10) == []
    assert (await store.approvals.decide(begun.turn.id, over, ALLOW, LEASE)).outcome == "over"
    waiting = await store.active.get(begun.turn.id)
    assert waiting is not None
    assert waiting.node_id is None
    decided = await store.approvals.decide(begun.turn.id, other, ALLOW, LEASE)
    assert decided.outcome == "taken"
    assert decided.held is not None
    assert decided.held.turn.status is TurnStatus.RUNNING


async def test_open_request_names_its_conversation_and_agent(store: Store):
    begun = await begin(store, LEASE)
    await ask(store, begun)
    known = (begun.conversation.agent_id, begun.conversation.title)
    for turn_id in (None, begun.turn.id):
        assert [(it.agent_id, it.title) for it in await store.approvals.open_of(ALICE, turn_id)] == [known]


async def test_turn_that_ends_closes_its_requests(store: Store, database: Database):
    begun = await begin(store, LEASE)
    request_id = await ask(store, begun, expires_at=NOW)
    reply = begun.assistant_message.finish(MessageStatus.CANCELLED, (), NOW + 1)
    await keep_ended(store, begun.conversation.end_turn(begun.turn, reply, NOW + 1))
    assert not await database.fetch(OPEN())
    assert (await store.approvals.decide(begun.turn.id, request_id, ALLOW, LEASE)).outcome == "over"


async def test_requests_that_an_older_version_left_open_are_closed_later(store: Store, database: Database):
    begun, other = await begin(store, LEASE), await begin(store, LEASE)
    left, lasts = await ask(store, begun, expires_at=NOW), await ask(store, other, expires_at=NOW)
    await database.execute(
        Statement("UPDATE tk_turns SET status = 'FAILED' WHERE id = :id")(id=begun.turn.id)
    )
    assert await store.approvals.close_of_ended(NOW) == 1
    assert [id_ for (id_,) in await database.fetch(OPEN())] == [lasts] != [left]


async def test_request_that_has_a_decision_is_not_withdrawn(store: Store):
    begun = await begin(store, LEASE)
    request_id = await ask(store, begun)
    assert (await store.approvals.decide(begun.turn.id, request_id, ALLOW, LEASE)).outcome == "taken"
    assert not await store.approvals.withdraw(begun.turn.id, request_id, EXPIRE)
    assert await store.approvals.decisions(begun.turn.id) == {request_id: ALLOW}


async def test_same_decision_is_recognised_in_whatever_order_its_fields_come(store: Store):
    begun = await begin(store, LEASE)
    request_id = await ask(store, begun)
    outcomes: list[str] = []
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": True}):
        edit = Decision(action=ApprovalAction.EDIT, at=NOW, arguments=arguments)
        outcomes.append((await store.approvals.decide(begun.turn.id, request_id, edit, LEASE)).outcome)
    assert outcomes == ["taken", "same", "other"]
