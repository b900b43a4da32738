"""A user with something of everything, and all that is kept of a user, for comparing."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from typing import Any

from tests.making import (
    ALICE,
    BOB,
    NOW,
    all_messages,
    chunk_of,
    keep_agent,
    keep_begun,
    keep_briefing,
    keep_conversation,
    keep_ended,
    keep_feedback,
    keep_turn,
    make_compaction,
    regenerated,
    said,
)
from threadkeep.bootstrap import opened_jobs_and_store
from threadkeep.domain.agent import AgentSettings, Visibility
from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.document import Document, DocumentStatus
from threadkeep.domain.events import Text
from threadkeep.domain.feedback import Rating
from threadkeep.domain.ids import DocumentId, MemoryId, PayloadId, UserId, new_uuid
from threadkeep.domain.mcp import RemoteServer, StdioServer
from threadkeep.domain.memory import Memory
from threadkeep.domain.message import Failure, MessageStatus, Usage
from threadkeep.domain.parts import FilePart, RetrievalPart, TextPart, ToolCallPart
from threadkeep.domain.payload import Lost, Payload, PayloadKind, content_hash
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.secret import Secret
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.tool_rules import ToolAccess, ToolEffect, ToolRule
from threadkeep.domain.workspace import PromptComponent
from threadkeep.settings import Settings
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.store import Store

SECRET_OF_SERVER = "sk-of-a-server-that-nobody-may-see"
BOBS_PROMPT = "Bob's own words to his agent"
RULES = {"web.*": ToolRule(access=ToolAccess.ASK), "time.now": ToolRule(effect=ToolEffect.READ)}
LARGE = {"rows": ["x" * 1000] * 17}


async def keep_everything(store: Store, settings: Settings) -> None:
    """Alice has an agent with a document, servers, prompt and memory; conversations with three agents."""
    servers = {
        "web": RemoteServer("https://tools.example/mcp", {"Authorization": Secret(SECRET_OF_SERVER)}),
        "time": StdioServer("uvx", ("mcp-server-time",), {"KEY": Secret(SECRET_OF_SERVER)}),
    }
    agent = await keep_agent(
        store,
        system_prompt="Be brief.",
        settings=AgentSettings(temperature=0.5, mcp_servers=servers, tools=RULES),
    )
    await FolderPromptFiles(settings.workspaces).write(agent.id, PromptComponent.ROLE, "You know the law.")
    content = b"Notice is three months."
    document = Document(
        DocumentId(new_uuid()), agent.id, "lease.txt", "text/plain", len(content), content_hash(content),
        DocumentStatus.PROCESSING, NOW, NOW,
    )  # fmt: skip
    await store.documents.add(document)
    await FolderDocumentFiles(settings.workspaces).keep(agent.id, document.id, BytesIO(content))
    bobs = await keep_agent(store, BOB, name="Bob's", visibility=Visibility.PUBLIC, system_prompt=BOBS_PROMPT)
    for it, told in ((agent, "Has a cat."), (bobs, "Likes tea.")):
        await store.memories.add(ALICE, it.id, Memory(MemoryId(new_uuid()), told, ("pets",), NOW), most=9)
    await store.users.instruct(ALICE, "Answer in French.", NOW)
    rich = await keep_conversation(store, agent, title="租约")
    await store.conversations.update(ALICE, rich.id, lambda it: replace(it, is_pinned=True))
    await _keep_rich(store, replace(rich, is_pinned=True), document)
    default = await store.agents.get_default()
    main, _ = await store.conversations.get_or_add_main(
        Conversation.start(ALICE, default.id, NOW - 5, is_main=True, metadata={"case": 7})
    )
    await keep_turn(store, main, "Hello?", "Good day.")
    await _keep_card(store, main)
    await keep_turn(store, await keep_conversation(store, bobs), "Tea?", "Please.")
    theirs = await keep_conversation(store, bobs, BOB, title="Bob's secret")
    await keep_turn(store, theirs, "Of Bob?", "Bob's answer.")
    gone = await keep_conversation(store, agent, title="Deleted")
    await store.conversations.delete(ALICE, gone.id, NOW)


async def _keep_rich(store: Store, conversation: Conversation, document: Document) -> None:
    """Tools, a file, a large value, thoughts, citations, versions, a failure, a summary."""
    begun = conversation.begin_turn("What of my lease?", NOW, model="scripted", title="Lease")
    await keep_begun(store, begun)
    ids: list[PayloadId] = []
    for value, kind, name in ((LARGE, PayloadKind.VALUE, None), ("A,B\n1,2", PayloadKind.FILE, "a.csv")):
        content = str(value).encode()
        payload = Payload.of(content, conversation.id, kind, "text/csv", NOW, file_name=name)
        await store.payloads.add(payload, content)
        ids.append(payload.id)
    reply = begun.assistant_message
    searched = ToolCall(
        turn_id=begun.turn.id,
        tool_call_id="call_1",
        message_id=reply.id,
        tool_name="search",
        server="web",
        arguments={"q": "lease"},
        status=ToolCallStatus.OK,
        created_at=NOW,
        chart_data={"chart": [1, 2]},
        duration_ms=15,
        artifact_ids=(ids[1],),
        refs={"result": ids[0]},
    )
    slow = ToolCall(
        begun.turn.id, "call_2", reply.id, "ask", "", {}, ToolCallStatus.TIMEOUT, NOW, None, "Too slow."
    )
    hits = (RetrievalHit("lease.txt", "three months", 0.7, document_id=document.id, page=2),)
    parts = (
        ToolCallPart(call=searched, iteration=1),
        RetrievalPart(query="lease", hits=hits, at=NOW, tool_call_id="call_1", iteration=1),
        ToolCallPart(call=slow, iteration=1),
        FilePart(file_id=PayloadId("engine:file-1"), is_elsewhere=True, iteration=1),
        TextPart(text="It ends in May [1].", iteration=2),
    )
    reply = reply.finish(MessageStatus.COMPLETED, parts, NOW + 2, usage=Usage(7, 9, estimated=True))
    ended = begun.conversation.end_turn(begun.turn, reply, NOW + 2)
    await keep_ended(store, ended)
    assert begun.user_message
    again = await regenerated(store, ended.conversation, begun.user_message, NOW + 3)
    await keep_begun(store, again)
    failed = again.assistant_message.finish(
        MessageStatus.FAILED,
        said("It en"),
        NOW + 4,
        error=Failure("AGENTX_ERROR", "The model is away.", retryable=True),
    )
    last = again.conversation.end_turn(again.turn, failed, NOW + 4)
    await keep_ended(store, last)
    await keep_feedback(store, last.conversation, Rating.DOWN, note="It broke off. 断了")
    more = await keep_turn(store, last.conversation, "And the deposit? 押金", "三个月", NOW + 5)
    await store.compactions.add(make_compaction(more.id, 1, 3))


async def _keep_card(store: Store, main: Conversation) -> None:
    briefing = await keep_briefing(store, main.agent_id)
    current = await store.conversations.get(ALICE, main.id)
    assert current
    grown, card = current.add_card(briefing, NOW + 9)
    await store.briefings.add_card(briefing, grown, card)


@asynccontextmanager
async def opened_store(settings: Settings) -> AsyncGenerator[Store]:
    """The store of a Threadkeep that does not run."""
    async with opened_jobs_and_store(settings) as (_, store):
        yield store


async def begin_without_end(store: Store, conversation: Conversation) -> None:
    """A turn that is still running, in the middle of a word."""
    begun = conversation.begin_turn("Still there?", NOW + 20)
    await keep_begun(store, begun)
    await store.log.append([(chunk_of(begun.turn.id, 2, Text("I am st")), 1)])


async def kept_of(store: Store, user: UserId) -> dict[str, Any]:
    """All that is kept of a user, as the product's own reading shows it."""
    agents = [
        it for it in await store.agents.page(user, after=None, offset=0, limit=100) if it.owner_id == user
    ]
    listed = await store.conversations.page(user, ConversationFilter(), after=None, offset=0, limit=100)
    kept: dict[str, Any] = {
        "agents": [replace(it, owner_id=None, settings=AgentSettings()) for it in agents],
        "briefings": [
            replace(it, user_id=ALICE)
            for it in await store.briefings.page(user, unread=False, before=None, limit=100)
        ],
        "memories": [
            it.memory for it in await store.whole_conversations.memories(user, after=None, limit=100)
        ],
        "instructions": await store.users.instructions(user),
        "order": [it.id for it in listed],
    }
    for it in listed:
        payloads = await store.whole_conversations.payloads(it.id, after=None, limit=100)
        contents = await store.payloads.load(it.id, (payload.id for payload in payloads))
        assert not any(isinstance(content, Lost) for content in contents.values())
        kept[it.id] = {
            "conversation": replace(it, user_id=ALICE, session_id=Secret(""), agent_id=it.agent_id),
            "messages": await all_messages(store, it),
            "turns": await store.whole_conversations.turns(it.id, after=None, limit=100),
            "compactions": await store.compactions.page(it.id, before=None, offset=0, limit=100),
            "payloads": payloads,
            "feedback": await store.feedback.of_conversation(it.id),
            "contents": contents,
        }
    return kept
