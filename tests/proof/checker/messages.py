"""Messages: none lost, none twice, each in its place."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.proof.checker.found import Found


def every_message_once(found: Found) -> Iterator[str]:
    """Every acknowledged message is stored once, as a message or waiting; no other more often."""
    stored = Counter(mark for mark, _, _ in found.marks)
    stored += Counter(mark for mark, _ in found.queued) + Counter(found.steering)
    for sent in found.seen.sent:
        count = stored[sent.mark]
        if sent.acknowledged and not count:
            yield f"message {sent.mark} was acknowledged and is lost (conversation {sent.conversation})"
        if count > 1:
            yield f"message {sent.mark} is stored {count} times (conversation {sent.conversation})"
        if sent.refused is not None and count:
            yield f"message {sent.mark} was refused ({sent.refused}) and yet stored"
    shown = Counter(
        str(it.get("content")) for items in found.seen.final.values() for it in items if it["role"] == "user"
    )
    for text, count in shown.items():
        if count > 1:
            yield f"the user reads {text!r} {count} times"


def paths_are_lines(found: Found) -> Iterator[str]:
    """The active path of a conversation is one line: each message follows the one before it."""
    paths: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in found.rows(
        "SELECT conversation_id, id, parent_id, role FROM tk_messages WHERE on_path"
        " ORDER BY conversation_id, seq"
    ):
        paths[str(row[0])].append(row)
    for conversation, path in paths.items():
        before = None
        for _, id_, parent, role in path:
            if before is not None and str(parent) != before:
                yield f"in {conversation}, {role} message {id_} doesn't follow {before} but {parent}"
            before = str(id_)
    tips = {
        str(id_): (str(tip) if tip else None)
        for id_, tip in found.rows("SELECT id, tip_id FROM tk_conversations")
    }
    for conversation, path in paths.items():
        if tips[conversation] != str(path[-1][1]):
            yield f"conversation {conversation} ends with {path[-1][1]}, not {tips[conversation]}"
