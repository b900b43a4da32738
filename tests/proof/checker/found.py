"""What the checker looks at."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from tests.proof.seen import Seen

Rows = Sequence[tuple[Any, ...]]
_MARK = re.compile(r"\[m:([a-z0-9-]+)\]")


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn as it is stored."""

    id: str
    conversation: str
    status: str
    question: str
    reply: str
    last_event_seq: int | None
    has_log: bool
    user: str
    begun_with: str


@dataclass
class Found:
    """What users saw, and what the database says; `rows` runs a query on it."""

    seen: Seen
    rows: Callable[[str], Rows]

    @cached_property
    def turns(self) -> Sequence[FoundTurn]:
        """All turns."""
        return [
            FoundTurn(
                str(id_),
                str(conversation),
                status,
                str(question),
                str(reply),
                seq,
                bool(log),
                user,
                str(begun_with),
            )
            for id_, conversation, status, question, reply, seq, log, user, begun_with in self.rows(
                """SELECT turn.id, turn.conversation_id, turn.status, turn.user_message_id,
                    turn.assistant_message_id, turn.last_event_seq, turn.has_log, conversation.user_id,
                    turn.begun_with
                FROM tk_turns AS turn JOIN tk_conversations AS conversation
                    ON conversation.id = turn.conversation_id ORDER BY turn.id"""
            )
        ]

    @cached_property
    def marks(self) -> Sequence[tuple[str, str, str]]:
        """The marks of all stored messages of users, with the message's id and its conversation."""
        stored = self.rows("SELECT id, conversation_id, content FROM tk_messages WHERE role = 'user'")
        return [(it[1], str(id_), str(talk)) for id_, talk, text in stored if (it := _MARK.search(text))]

    @cached_property
    def steering(self) -> Sequence[str]:
        """The marks of messages that joined a running turn: they are in its reply."""
        query = "SELECT parts FROM tk_messages WHERE role = 'assistant' AND parts LIKE '%user_text%'"
        parts = (part for (stored,) in self.rows(query) for part in msgspec.json.decode(stored))
        texts = (
            str(part.get("content") or part.get("text")) for part in parts if part["type"] == "user_text"
        )
        return [it[1] for text in texts if (it := _MARK.search(text))]

    @cached_property
    def queued(self) -> Sequence[tuple[str, str]]:
        """The marks of messages that still wait, with their conversations."""
        stored = self.rows("SELECT conversation_id, content FROM tk_queued")
        return [(it[1], str(talk)) for talk, text in stored if (it := _MARK.search(text))]

    @cached_property
    def events(self) -> dict[str, dict[int, Any]]:
        """What was seen of each turn's log, by number: the replay in the end, else what followers saw."""
        found: dict[str, dict[int, Any]] = {
            turn_id: {it["seq"]: it for it in events} for turn_id, events in self.seen.replays.items()
        }
        for followed in self.seen.followed:
            if not followed.is_replay and followed.turn_id not in self.seen.replays:
                known = found.setdefault(followed.turn_id, {})
                for event in followed.events:
                    known.setdefault(event["seq"], event)
        return found
