"""Turns: each has one end, and a log without a gap."""

from collections import defaultdict
from collections.abc import Iterator

from tests.proof.checker.found import Found
from threadkeep.domain.events import TurnEvent
from threadkeep.log.format import decode_entries

OVER = {"COMPLETED": "done", "CANCELLED": "done", "FAILED": "error"}


def every_turn_has_one_end(found: Found) -> Iterator[str]:
    """It has ended, its reply has ended with it in the same way, and its log says so once, at the end."""
    replies = {
        str(id_): (status, str(turn))
        for id_, status, turn in found.rows(
            "SELECT id, status, turn_id FROM tk_messages WHERE role = 'assistant'"
        )
    }
    for turn in found.turns:
        if turn.status not in OVER:
            yield f"turn {turn.id} has no end: it is {turn.status}"
            continue
        status, turn_of_reply = replies.get(turn.reply, ("gone", ""))
        if status != turn.status or turn_of_reply != turn.id:
            yield f"turn {turn.id} is {turn.status}, but its reply {turn.reply} is {status}"
        events = found.events.get(turn.id, {})
        ends = [seq for seq, it in events.items() if it["type"] in {"done", "error"}]
        if len(ends) > 1:
            yield f"turn {turn.id} has {len(ends)} ends, at {ends}"
        for seq in ends:
            if turn.last_event_seq is not None and seq != turn.last_event_seq:
                yield f"turn {turn.id} ended at event {seq}, but goes on to {turn.last_event_seq}"
            if events[seq]["type"] != OVER[turn.status]:
                yield f"turn {turn.id} is {turn.status}, but ended with {events[seq]['type']}"
        calls = [it["tool_call_id"] for it in events.values() if it["type"] == "tool_call"]
        results = [it["tool_call_id"] for it in events.values() if it["type"] == "tool_result"]
        if turn.id in found.seen.replays and sorted(calls) != sorted(results):
            yield f"turn {turn.id} has calls {sorted(calls)}, but results {sorted(results)}"


def logs_have_no_gap(found: Found) -> Iterator[str]:
    """The stored chunks of a turn follow one another, and each has the events that its numbers say."""
    chunks: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    query = "SELECT turn_id, first_seq, last_seq, events FROM tk_turn_chunks ORDER BY turn_id, first_seq"
    for turn_id, first, last, events in found.rows(query):
        chunks[str(turn_id)].append((first, last, events))
    for turn in found.turns:
        expected = 1
        for first, last, events in chunks[turn.id]:
            if first != expected:
                yield f"the log of turn {turn.id} goes from {expected - 1} to {first}"
            numbered = [it.seq for it in decode_entries(events) if isinstance(it, TurnEvent)]
            if numbered and numbered != list(range(first, last + 1)):
                yield f"a chunk of turn {turn.id} from {first} to {last} holds {numbered}"
            expected = last + 1
        if chunks[turn.id] and turn.last_event_seq is not None and expected - 1 != turn.last_event_seq:
            yield f"the log of turn {turn.id} ends at {expected - 1}, not at {turn.last_event_seq}"
        if bool(chunks[turn.id]) != turn.has_log:
            yield f"turn {turn.id} says has_log={turn.has_log}, but has {len(chunks[turn.id])} chunks"
