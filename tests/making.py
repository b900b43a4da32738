"""Things for tests, made the way the product makes them."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

from threadkeep.clock import Clock, system_clock
from threadkeep.domain.agent import Agent, AgentSettings, AuditEntry, Visibility
from threadkeep.domain.approval import Approval, ApprovalKind
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import BegunTurn, Conversation, EndedTurn, WholeConversation
from threadkeep.domain.document import Chunk, Document, DocumentStatus
from threadkeep.domain.events import Done, EventBody, Failed, LogChunk, Text, TurnEvent, TurnStart
from threadkeep.domain.feedback import Feedback, Rating
from threadkeep.domain.ids import (
    AgentId,
    BriefingId,
    CompactionId,
    ConversationId,
    DocumentId,
    MemoryId,
    MessageId,
    PayloadId,
    TurnId,
    UserId,
    new_uuid,
)
from threadkeep.domain.memory import Memory
from threadkeep.domain.message import Failure, Message, MessageRole, MessageStatus, MessageWindow, Usage
from threadkeep.domain.parts import Parts, TextPart, ToolCallPart
from threadkeep.domain.payload import Payload, PayloadKind, content_hash
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.receipt import Receipt, TurnReceipt
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.turn import Lease, Turn, TurnOrigin
from threadkeep.domain.uploaded_file import ORIGINAL, KeptRendition, PreparedFile, UploadedFile
from threadkeep.log.format import encode_chunk
from threadkeep.log.writer import Charged
from threadkeep.ports.documents import ExtractedPart, IndexedChunk
from threadkeep.ports.models import Models
from threadkeep.runtime.spending import Spending
from threadkeep.search.terms import terms
from threadkeep.storage.store import Store

ALICE, BOB = UserId("alice"), UserId("bob")
NOW = 1_800_000_000_000
NODE_ID = "a-node"


def make_agent(owner: UserId | None = ALICE, **changes: Any) -> Agent:
    """An agent with the defaults of a new one."""
    values: dict[str, Any] = {
        "id": AgentId(new_uuid()),
        "owner_id": owner,
        "name": "法律顾问",
        "description": "",
        "primary_role_id": "assistant",
        "system_prompt": "",
        "model": None,
        "visibility": Visibility.PRIVATE,
        "settings": AgentSettings(),
        "is_default": False,
        "version": 1,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Agent(**(values | changes))


async def keep_agent(store: Store, owner: UserId = ALICE, **changes: Any) -> Agent:
    """An agent in the store."""
    agent = make_agent(owner, **changes)
    await store.agents.add(agent, AuditEntry(new_uuid(), NOW, owner, "create", agent.id, {}))
    return agent


async def keep_conversation(
    store: Store, agent: Agent, user: UserId = ALICE, now: int = NOW, title: str | None = None
) -> Conversation:
    """A further conversation in the store."""
    conversation = Conversation.start(user, agent.id, now, title=title)
    await store.conversations.add(conversation)
    return conversation


async def keep_tree(store: Store, agent_id: AgentId, follows: Sequence[int | None]) -> Conversation:
    """A conversation in which each message follows another one, or none; the last one is shown."""
    started = Conversation.start(ALICE, agent_id, NOW)
    ids = [MessageId(new_uuid()) for _ in follows]
    path = {at := len(ids) - 1}
    while (before := follows[at]) is not None:
        path.add(at := before)
    messages = [
        Message(
            ids[at], started.id, at + 1, None, MessageRole.USER, said(f"m{at}"), MessageStatus.COMPLETED, NOW,
            parent_id=None if before is None else ids[before], on_path=at in path,
        )
        for at, before in enumerate(follows)
    ]  # fmt: skip
    made = replace(started, last_seq=len(ids), message_count=len(path), tip_id=ids[-1])
    await store.whole_conversations.add(WholeConversation(made, (), messages), lambda payload: b"")
    return made


async def keep_begun(store: Store, begun: BegunTurn) -> None:
    """A begun turn in the store, written by a node that does not die."""
    await store.turns.begin(opened(begun))


def opened(begun: BegunTurn, lease: Lease | None = None, opening: LogChunk | None = None) -> BegunTurn:
    """A turn as a node stores it when it begins."""
    lease = lease or Lease(NODE_ID, 1, 10**9)
    return replace(begun, lease=lease, opening=opening or opening_of(begun))


def opening_of(begun: BegunTurn) -> LogChunk:
    """The first chunk of a turn's log."""
    return chunk_of(begun.turn.id, 1, TurnStart.of(begun.turn))


def chunk_of(turn_id: TurnId, first_seq: int, *bodies: EventBody, at: int = NOW) -> LogChunk:
    """Events as a log keeps them."""
    events = [TurnEvent(turn_id, seq, at, body) for seq, body in enumerate(bodies, first_seq)]
    return LogChunk(turn_id, first_seq, events[-1].seq, encode_chunk(events))


def said(text: str) -> Parts:
    """The parts of a reply that one model call wrote."""
    return (TextPart(text=text, iteration=1),) if text else ()


async def keep_ended(store: Store, ended: EndedTurn, *, fence: int = 1) -> None:
    """A turn's end in the store, with the events that tell it."""
    turn, reply = ended.turn, ended.assistant_message
    end = (
        Failed(reply.error.code, reply.error.message)
        if reply.error
        else Done("COMPLETED", reply.id, reply.usage or Usage(0, 0), "end_turn")
    )
    await store.turns.end(ended, chunk_of(turn.id, 2, Text(reply.text), end), fence)


async def keep_turn(
    store: Store,
    conversation: Conversation,
    asked: str,
    replied: str,
    now: int = NOW,
    *,
    origin: TurnOrigin = TurnOrigin.LIVE,
) -> Conversation:
    """A whole turn in the store: the question and the finished reply.

    A recorded one is nobody's to look after: a server that runs meanwhile does not take it for abandoned.
    """
    begun = conversation.begin_turn(asked, now, model="scripted")
    begun = replace(begun, turn=replace(begun.turn, origin=origin))
    await keep_begun(store, begun)
    usage = Usage(input_tokens=len(asked), output_tokens=len(replied))
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, said(replied), now + 1, usage=usage)
    ended = begun.conversation.end_turn(begun.turn, reply, now + 1)
    await keep_ended(store, ended)
    return ended.conversation


async def keep_feedback(
    store: Store,
    conversation: Conversation,
    rating: Rating = Rating.UP,
    *,
    note: str = "",
    share_text: bool = False,
    now: int = NOW,
) -> Feedback:
    """Feedback on a conversation's latest reply in the store."""
    assert conversation.tip_id
    feedback = Feedback(conversation.tip_id, conversation.id, rating, note, share_text, now, now)
    assert await store.feedback.put(feedback) == feedback
    return feedback


async def keep_queued(
    store: Store, conversation: Conversation, content: str, now: int = NOW
) -> tuple[Conversation, QueuedMessage]:
    """A message in the store that is held because the turn before it failed."""
    begun = conversation.begin_turn("?", now, model="scripted")
    await keep_begun(store, begun)
    message = QueuedMessage.of(conversation.id, content, now)
    await store.queue.add(message, begun.turn.id)
    reply = begun.assistant_message.finish(MessageStatus.FAILED, (), now + 1, error=Failure("E", "No.", True))
    ended = begun.conversation.end_turn(begun.turn, reply, now + 1)
    await keep_ended(store, ended)
    return ended.conversation, message


async def keep_approval(store: Store, conversation_id: str, turn_id: str, message: str) -> Approval:
    """A request to the user in the store."""
    approval = Approval(
        request_id=new_uuid(),
        turn_id=TurnId(turn_id),
        conversation_id=ConversationId(conversation_id),
        kind=ApprovalKind.TOOL,
        message=message,
        created_at=NOW,
        expires_at=2 * NOW,
        tool_call_id="1",
        tool_name="send",
        server="post",
        arguments={},
    )
    await store.approvals.add(approval)
    return approval


async def regenerated(store: Store, conversation: Conversation, asked: Message, now: int = NOW) -> BegunTurn:
    """A turn that replies to a question again, not kept yet."""
    branch = await store.branches.up_to(conversation.id, asked.id)
    assert branch is not None
    return conversation.regenerate(asked.id, branch, now, model="scripted")


async def keep_call(
    store: Store, conversation: Conversation, tool_call_id: str, now: int = NOW, **changes: Any
) -> tuple[Conversation, ToolCall]:
    """A turn in which the agent takes on a role, or, with changes, calls another tool."""
    begun = conversation.begin_turn("?", now)
    await keep_begun(store, begun)
    call = ToolCall(
        turn_id=begun.turn.id,
        tool_call_id=tool_call_id,
        message_id=begun.assistant_message.id,
        tool_name="promptx_action",
        server="promptx",
        arguments={"role": tool_call_id},
        status=ToolCallStatus.OK,
        created_at=now,
        duration_ms=1,
    )
    call = replace(call, **changes)
    parts = (ToolCallPart(call=call, iteration=1), TextPart(text="Done.", iteration=2))
    reply = begun.assistant_message.finish(MessageStatus.COMPLETED, parts, now + 1)
    ended = begun.conversation.end_turn(begun.turn, reply, now + 1)
    await keep_ended(store, ended)
    return ended.conversation, call


async def keep_memory(store: Store, agent_id: AgentId, content: str, user: UserId = ALICE) -> Memory:
    """Something that an agent remembers."""
    memory = Memory(MemoryId(new_uuid()), content, ("tea",), NOW)
    await store.memories.add(user, agent_id, memory, most=100)
    return memory


async def keep_briefing(
    store: Store, agent_id: AgentId, user: UserId = ALICE, title: str = "政策更新"
) -> Briefing:
    """A briefing in the store."""
    briefing = Briefing(
        BriefingId(new_uuid()), agent_id, user, title, f"{title}。", Priority.P1, None, (), NOW
    )
    await store.briefings.add(briefing)
    return briefing


def make_compaction(
    conversation_id: ConversationId, from_seq: int, to_seq: int, summary: str = "So far."
) -> Compaction:
    """A compaction of a run of messages."""
    count = to_seq - from_seq + 1
    return Compaction(CompactionId(new_uuid()), conversation_id, from_seq, to_seq, summary, count, 90, 9, NOW)


async def keep_receipt(store: Store, turn: Turn, receipt: Receipt, texts: Mapping[str, str]) -> None:
    """Stores what a turn's model was sent."""
    await store.log.append([], [(TurnReceipt(turn.id, turn.conversation_id, receipt, texts), 1)])


def make_receipt(**changes: Any) -> Receipt:
    """What a model was sent, in a turn without tools."""
    values: dict[str, Any] = {
        "model": "scripted",
        "components": (),
        "message_ids": (),
        "tools": (),
        "temperature": None,
        "max_tokens": None,
        "zone": "UTC",
        "token_estimate": 1,
        "dropped_messages": 0,
    }
    return Receipt(**(values | changes))


async def keep_artifact(store: Store, conversation_id: str, words: str = "words") -> PayloadId:
    """A file of a conversation in the store."""
    content = words.encode()
    file = Payload.of(
        content, ConversationId(conversation_id), PayloadKind.FILE, "text/plain", NOW, file_name="a.txt"
    )
    await store.payloads.add(file, content)
    return file.id


async def keep_file(
    store: Store, user_id: UserId = ALICE, words: str = "words", renditions: Sequence[str] = ()
) -> PayloadId:
    """A file of a user in the store that no message has."""
    contents = {ORIGINAL: words.encode(), **{name: f"{words}: {name}".encode() for name in renditions}}
    made = {
        name: KeptRendition(
            id=PayloadId(new_uuid()), media_type="image/png", size=len(content), sha256=content_hash(content)
        )
        for name, content in contents.items()
    }
    original = made.pop(ORIGINAL)
    file = UploadedFile(
        id=original.id,
        file_name="a.txt",
        media_type="text/plain",
        size=original.size,
        sha256=original.sha256,
        created_at=NOW,
        renditions=made,
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in contents}
        for name, path in paths.items():
            path.write_bytes(contents[name])
        await store.files.add(user_id, [PreparedFile(file, paths)], lambda room: None)
    return file.id


async def all_messages(store: Store, conversation: Conversation) -> list[Message]:
    """Every message of a conversation, oldest first."""
    window = MessageWindow(with_overwritten=True)
    return list(await store.messages.page(conversation.id, window, offset=0, limit=10_000))


async def keep_document(store: Store, agent_id: AgentId, *texts: str, ready: bool = True) -> Document:
    """A document with one chunk a text."""
    id_, status = DocumentId(new_uuid()), DocumentStatus.PROCESSING
    document = Document(id_, agent_id, "a.txt", "text/plain", 1, new_uuid(), status, NOW, NOW)
    await store.documents.add(document)
    chunks = [IndexedChunk(Chunk(position, text), terms(text)) for position, text in enumerate(texts)]
    assert await store.documents.add_part(document, ExtractedPart(chunks, 0.5), NOW)
    if ready:
        await store.documents.update(agent_id, id_, lambda it: it.become(DocumentStatus.READY, NOW))
    return document


def spending_of(
    store: Store,
    models: Models,
    clock: Clock = system_clock,
    *,
    user_month: str = "0",
    charged: Charged = lambda model, cost: None,
) -> Spending:
    """What pays for model calls, within this limit."""
    return Spending(
        store.ledger, store.keys, models, clock, UTC, currency="USD", user_month=user_month, charged=charged
    )
