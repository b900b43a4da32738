"""Exports of other products, small, in the shapes that the real ones have."""

from collections.abc import Mapping
from typing import Any

DAY = 1_700_000_000  # in seconds


def said(role: str, *parts: object, at: float = DAY, **more: Any) -> dict[str, Any]:
    """A message of ChatGPT."""
    content = {"content_type": "text", "parts": list(parts)}
    return {"id": "m", "author": {"role": role, "name": None}, "create_time": at, "content": content} | more


def chatgpt(
    nodes: Mapping[str, tuple[str | None, dict[str, Any] | None]], current: str | None, **more: Any
) -> dict[str, Any]:
    """A conversation of ChatGPT: nodes with their parents and messages."""
    mapping: dict[str, Any] = {
        id_: {
            "id": id_,
            "message": message,
            "parent": parent,
            "children": [child for child, (its, _) in nodes.items() if its == id_],
        }
        for id_, (parent, message) in nodes.items()
    }
    told = {
        "title": "Leases", "create_time": DAY, "update_time": DAY + 100, "mapping": mapping,
        "current_node": current, "conversation_id": "conversation-1", "is_archived": False,
    }  # fmt: skip
    return told | more


def branched() -> dict[str, Any]:
    """One question was answered twice, the next one was edited after it had been answered."""
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Law", "content": "Hm."}]}
    searched = {"author": {"role": "tool", "name": "search"}}
    by_model = {"metadata": {"model_slug": "gpt-4o"}}
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    return chatgpt(
        {
            "root": (None, None),
            "system": ("root", said("system", "")),
            "context": ("system", said("user", "About me", at=DAY, **hidden)),
            "q1": ("context", said("user", "What is a lease?", at=DAY + 1)),
            "a1-old": ("q1", said("assistant", "No idea.", at=DAY + 2)),
            "thought": (
                "q1",
                said("assistant", at=DAY + 3) | {"content": thoughts},
            ),
            "call": (
                "thought",
                said("assistant", at=DAY + 4, recipient="search")
                | {"content": {"content_type": "code", "language": "json", "text": '{"q": "lease"}'}},
            ),
            "result": ("call", said("tool", "A contract.", at=DAY + 5) | searched),
            "a1": ("result", said("assistant", "A contract to rent.", at=DAY + 6, **by_model)),
            "q2": ("a1", said("user", "And the deposit?", at=DAY + 7)),
            "a2": ("q2", said("assistant", "Three rents.", at=DAY + 8)),
            "q2-edited": (
                "a1",
                said("user", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"},
                     "And this one?", at=DAY + 9),
            ),
            "a2-edited": ("q2-edited", said("assistant", "A house.", at=DAY + 10)),
        },
        "a2-edited",
    )  # fmt: skip


def claude(**more: Any) -> dict[str, Any]:
    """A conversation of Claude."""
    told = {
        "uuid": "11111111-aaaa-4aaa-8aaa-111111111111",
        "name": "Deposits",
        "created_at": "2023-11-14T22:13:20.000000Z",
        "updated_at": "2023-11-14T22:15:00.000000Z",
        "account": {"uuid": "an-account"},
        "chat_messages": [
            {
                "uuid": "m1", "sender": "human", "text": "How much?",
                "content": [{"type": "text", "text": "How much?"}],
                "created_at": "2023-11-14T22:13:21.000000Z", "attachments": [
                    {"file_name": "lease.txt", "file_size": 9, "extracted_content": "Three rents."}],
                "files": [{"file_name": "photo.png"}],
            },
            {
                "uuid": "m2", "sender": "assistant", "text": "", "created_at": "2023-11-14T22:13:25.000000Z",
                "content": [
                    {"type": "thinking", "thinking": "It says so."},
                    {"type": "tool_use", "name": "reader", "input": {"file": "lease.txt"}},
                    {"type": "tool_result", "name": "reader", "content": "x" * 20_000, "is_error": False},
                    {"type": "text", "text": "Three rents, says the lease."},
                ],
                "attachments": [], "files": [],
            },
            {"uuid": "m3", "sender": "human", "text": "Thanks!", "created_at": "2023-11-14T22:14:00Z"},
        ],
    }  # fmt: skip
    return told | more
