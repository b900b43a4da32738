"""Effects: nothing done twice without consent."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.proof.checker.found import Found


def no_effect_twice(found: Found) -> Iterator[str]:
    """No write is handed over twice; what may be repeated is repeated with the key that it had."""
    asked = {id_: mark for mark, id_, _ in found.marks}
    answers_to = Counter(asked.get(turn.question) for turn in found.turns)
    consented = {(it.turn_id) for it in found.seen.answered if it.action == "allow" and it.status < 300}
    keys: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    effects: dict[tuple[str, str], str] = {}
    for it in found.seen.hand_overs:
        keys[it.name, it.about][it.key] += 1
        effects[it.name, it.about] = it.effect
    most_again = max(answers_to.values(), default=1)
    for (name, about), counted in keys.items():
        for key, count in counted.items():
            if not key:
                yield f"{name} for {about} was handed over without a key"
            if effects[name, about] == "write" and count > 1 and not consented:
                yield f"the write {name} for {about} was handed over {count} times with the key {key}"
        if effects[name, about] == "read":
            continue
        mark = about.rsplit("-", 2)[0] if about.count("-") == 3 else about.rsplit("-", 1)[0]
        most = max(answers_to[mark], 1) if mark in answers_to else most_again
        if len(counted) > most and not consented:
            yield f"{name} for {about} has {len(counted)} keys in {most} turns: {sorted(counted)}"
