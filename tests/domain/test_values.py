"""The smaller values: ids, agents, tool calls, documents, compactions, payloads."""

import uuid
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.making import make_agent
from threadkeep.domain.agent import Visibility
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.document import Document, DocumentStatus
from threadkeep.domain.errors import AgentNotFound, Forbidden, IllegalTransition, InvalidRequest
from threadkeep.domain.ids import (
    AgentId,
    CompactionId,
    ConversationId,
    DocumentId,
    MessageId,
    TurnId,
    UserId,
    is_uuid,
    new_uuid,
)
from threadkeep.domain.mcp import RemoteServer, StdioServer, definition_of
from threadkeep.domain.payload import content_hash
from threadkeep.domain.secret import Secret
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.domain.user import User, UserRole, user_id

ALICE, BOB, ROOT = User(UserId("alice")), User(UserId("bob")), User(UserId("root"), UserRole.ADMIN)


def test_ids_are_uuid7_and_ascend():
    ids = [new_uuid() for _ in range(20_000)]
    assert ids == sorted(set(ids))
    assert all(uuid.UUID(it).version == 7 and uuid.UUID(it).variant == uuid.RFC_4122 for it in ids[:100])


def test_next_id_cannot_be_guessed_from_the_one_before_however_soon_it_is_made():
    ids = [uuid.UUID(new_uuid()).int & ~(0xF << 76 | 3 << 62) for _ in range(2_000)]
    steps = [after - before for before, after in pairwise(ids)]
    assert len(set(steps)) == len(steps)
    assert min(steps) > 1 << 20  # each has 64 random bits


@pytest.mark.parametrize(
    "text", ["", "x", "1", "{01890a5d-ac96-774b-bcce-b302099a8057}", "01890a5dac96774bbcceb302099a8057"]
)
def test_what_is_no_uuid_is_no_id(text: str):
    assert not is_uuid(text)
    assert is_uuid("01890A5D-AC96-774B-BCCE-B302099A8057")


@pytest.mark.parametrize("text", ["", " ", "x" * 256, "a\x00b"])
def test_bad_user_ids_are_refused(text: str):
    with pytest.raises(InvalidRequest):
        user_id(text)


def test_private_agent_does_not_exist_for_others():
    agent = make_agent(ALICE.id)
    agent.check_open_to(ALICE)
    agent.check_open_to(ROOT)
    with pytest.raises(AgentNotFound):
        agent.check_visible_to(BOB)


def test_public_agent_can_be_talked_to_but_not_changed_by_others():
    agent = make_agent(ALICE.id, visibility=Visibility.PUBLIC)
    agent.check_visible_to(BOB)
    with pytest.raises(Forbidden):
        agent.check_open_to(BOB)


def test_deleted_agent_is_gone_for_everybody_and_the_default_one_stays():
    gone = make_agent(ALICE.id, visibility=Visibility.PUBLIC).delete(9)
    for user in (ALICE, BOB, ROOT):
        with pytest.raises(AgentNotFound):
            gone.check_visible_to(user)
    with pytest.raises(Forbidden):
        make_agent(None, is_default=True).delete(9)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"model": ""}, "model"),
        ({"primary_role_id": "\u3000"}, "primaryRoleId"),
        ({"system_prompt": "x" * 100_001}, "systemPrompt"),
        ({"description": "a\x00"}, "description"),
    ],
)
def test_bad_agents_are_refused_with_the_field_named(changes: dict[str, str], param: str):
    with pytest.raises(InvalidRequest) as refused:
        make_agent(ALICE.id, **changes)
    assert refused.value.param == param


def test_tool_call_has_exactly_one_result():
    call = ToolCall(
        TurnId(new_uuid()), "c1", MessageId(new_uuid()), "search", "web", {}, ToolCallStatus.RUNNING, 1
    )
    ended = call.end(ToolCallStatus.ERROR, error="away", duration_ms=3)
    for status in ToolCallStatus:
        with pytest.raises(IllegalTransition):
            ended.end(status)
    with pytest.raises(IllegalTransition):
        call.end(ToolCallStatus.RUNNING)


def test_failed_document_can_be_retried_and_a_ready_one_not():
    document = Document(
        DocumentId(new_uuid()), AgentId(new_uuid()), "合同.pdf", "application/pdf", 1, content_hash(b"x"),
        DocumentStatus.PROCESSING, 1, 1,
    )  # fmt: skip
    failed = document.become(DocumentStatus.FAILED, 2, error="broken")
    assert failed.become(DocumentStatus.PROCESSING, 3).error is None
    ready = document.become(DocumentStatus.READY, 2)
    assert ready.progress == 1
    with pytest.raises(IllegalTransition):
        ready.become(DocumentStatus.PROCESSING, 3)
    with pytest.raises(InvalidRequest):
        replace(document, file_name="")


@pytest.mark.parametrize(("first", "last", "summary"), [(0, 3, "s"), (4, 3, "s"), (1, 3, " ")])
def test_bad_compactions_are_refused(first: int, last: int, summary: str):
    with pytest.raises(InvalidRequest):
        Compaction(CompactionId(new_uuid()), ConversationId(new_uuid()), first, last, summary, 3, 10, 2, 1)


def test_definition_of_a_tool_changes_with_what_a_call_does_and_where_it_goes():
    known: dict[str, Any] = {"name": "send", "description": "Sends.", "input_schema": {"type": "object"}}
    changes: list[dict[str, Any]] = [
        {"name": "drop"},
        {"description": "Drops."},
        {"input_schema": {"type": "object", "required": []}},
    ]
    server = RemoteServer("https://example.com/mcp", {"Key": Secret("a")})
    definitions = [
        definition_of(server, **known),
        *(definition_of(server, **known | change) for change in changes),
        definition_of(RemoteServer("https://example.org/mcp", {"Key": Secret("a")}), **known),
        definition_of(RemoteServer("https://example.com/mcp", {"Key": Secret("b")}), **known),
        definition_of(StdioServer("npx", ("a",)), **known),
        definition_of(StdioServer("npx", ("b",)), **known),
        definition_of(StdioServer("npx", ("a",), cwd="x"), **known),
        definition_of(StdioServer("npx", ("a",), {"TO": Secret("x")}), **known),
        definition_of(None, **known),
    ]  # fmt: skip
    assert len({*definitions}) == len(definitions)
    slow = RemoteServer("https://example.com/mcp", {"Key": Secret("a")}, timeout_s=5)
    assert definition_of(slow, **known) == definitions[0]
