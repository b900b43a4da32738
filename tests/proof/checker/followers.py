"""Followers: what each saw is the log."""

from collections.abc import Iterator

from tests.proof.checker.found import Found


def followers_saw_the_log(found: Found) -> Iterator[str]:
    """Event after event from where it began, without gap or repetition, the same for all."""
    for followed in found.seen.followed:
        who = f"{followed.user}, following turn {followed.turn_id} at {followed.node} after {followed.after},"
        if followed.end == "over" and followed.events[-1]["type"] not in {"done", "error"}:
            yield f"{who} was told that it is over with {followed.events[-1]['type']}"
        if followed.is_replay:
            continue
        numbers = [it["seq"] for it in followed.events]
        expected = list(range(followed.after + 1, followed.after + 1 + len(numbers)))
        if numbers != expected:
            yield f"{who} saw {numbers} instead of {expected}"
        known = found.events.get(followed.turn_id, {})
        for event in followed.events:
            if known.get(event["seq"], event) != event:
                yield f"{who} saw {event}, but the log has {known[event['seq']]}"
        if followed.turn_id in found.seen.replays and numbers and numbers[-1] > max(known):
            yield f"{who} saw event {numbers[-1]}, but the log ends at {max(known)}"
    for turn_id, events in found.seen.replays.items():
        if [it["seq"] for it in events] != list(range(1, len(events) + 1)):
            yield f"the replay of turn {turn_id} has {[it['seq'] for it in events]}"
