"""A tool's result as the model reads it: complete at first, shortened when room gets tight."""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from threadkeep.context.estimates import beginning_of
from threadkeep.domain.text import storable

TURN_ENDED = "The turn ended before the tool finished."
"""What the model reads of a call that its turn did not wait for."""

MOST_RESULT_CHARACTERS = 20_000
"""The maximum of a result for the model; the record has all of it."""

LEAST_RESULT_TOKENS = 100
"""The minimum of a result in the running turn, however little room there is."""

SHORT_HEAD_CHARACTERS = 600
SHORT_TAIL_CHARACTERS = 200

RECALL_RESULT = "recall_result"


_encode = msgspec.json.Encoder().encode


class Form(IntEnum):
    """The form of an earlier turn's result; a shortened one never grows again."""

    WHOLE = 0
    SHORT = 1
    """What it was, how it begins and ends, and how to read it again."""
    OUTLINE = 2
    """What it was, and how to read it again."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A result's short form; a call whose result is in the payload store carries it."""

    characters: int
    head: str
    tail: str

    @staticmethod
    def of(text: str) -> "Excerpt":
        """The excerpt of a result's whole text, however much of it the model received."""
        head, tail = text[:SHORT_HEAD_CHARACTERS], text[-SHORT_TAIL_CHARACTERS:]
        return Excerpt(len(text), storable(head), storable(tail))

    @staticmethod
    def stored(value: object) -> "Excerpt | None":
        """The excerpt that a call carries, if it has one."""
        try:
            return msgspec.convert(value, Excerpt)
        except msgspec.ValidationError:
            return None

    def to_store(self) -> dict[str, Any]:
        """As the call carries it."""
        return asdict(self)


class Shrinkable(NamedTuple):
    """A result or a file of an earlier turn: its form, and the tokens that it takes in each form."""

    key: str
    form: Form
    tokens: Mapping[Form, int]


def stored_text(result: Any, error: str | None) -> str:
    """A stored result as text: a string as is, anything else as JSON."""
    content = result if error is None else error
    return content if isinstance(content, str) else _encode(content).decode()


def model_reads(call_id: str, text: str, most_tokens: int | None = None, *, can_recall: bool = True) -> str:
    """What the model reads of a result: all of its text, or the beginning and how to read on, if it can."""
    kept = text[:MOST_RESULT_CHARACTERS]
    if most_tokens is not None:
        kept = beginning_of(kept, most_tokens)
    if len(kept) == len(text):
        return text if text.isascii() and "\x00" not in text else storable(text)
    more = f'; {RECALL_RESULT} with id "{call_id}" and offset {len(kept)} returns more' if can_recall else ""
    return storable(f"{kept}\n… [{len(text)} characters, cut here{more}]")


def short_form(tool_name: str, call_id: str, excerpt: Excerpt) -> str:
    """What it was, how it begins and ends, and how to read it again."""
    return (
        f"[An earlier result of {tool_name}, shortened from {excerpt.characters} characters; "
        f'{RECALL_RESULT} with id "{call_id}" returns it]\n{excerpt.head}\n…\n{excerpt.tail}'
    )


def outline(tool_name: str, call_id: str, excerpt: Excerpt) -> str:
    """What it was, and how to read it again."""
    return f'[{tool_name}: {excerpt.characters} characters; {RECALL_RESULT} with id "{call_id}"]'


def describe_call(
    tool_name: str, arguments: object, status: str, reads: object, *, most_given: int, most_read: int
) -> str:
    """A call and its result as shortened text, for models without tool blocks."""
    given = _around(stored_text(arguments, None), most_given)
    return f"[Called {tool_name} with {given}; {status}: {_around(stored_text(reads, None), most_read)}]"


def _around(text: str, most: int) -> str:
    """A text, or its beginning and end if it is too long."""
    return text if len(text) <= most else f"{text[: most * 3 // 4]} … {text[-most // 4 :]}"


def prior_forms(shortened: Collection[str], outlined: Collection[str]) -> dict[str, Form]:
    """The forms of an earlier request's results, by the ids of their calls; those sent whole are left out."""
    return dict.fromkeys(shortened, Form.SHORT) | dict.fromkeys(outlined, Form.OUTLINE)


def choose_forms(parts: Sequence[Shrinkable], budget: int) -> dict[str, Form]:
    """The forms of results or files, oldest first, by their keys; those sent whole are left out.

    If together they exceed the budget, they shrink until half of it is free, so that the request's beginning
    rarely changes. The oldest and largest shrink first.
    """
    forms = {it.key: it.form for it in parts if it.form is not Form.WHOLE}
    total = sum(it.tokens[it.form] for it in parts)
    if total <= budget:
        return forms
    steps = [step for age, it in enumerate(reversed(parts), 1) for step in _steps(it, it.form, age)]
    heapq.heapify(steps)
    while steps and total > budget // 2:
        step = heapq.heappop(steps)
        total -= step.saved
        forms[step.part.key] = step.form
        for following in _steps(step.part, step.form, step.age):
            heapq.heappush(steps, following)
    return forms


class _Step(NamedTuple):
    """A result or file that can be shortened; the first to shorten sorts first."""

    weight: int
    age: int
    form: Form
    saved: int
    part: Shrinkable


def _steps(part: Shrinkable, form: Form, age: int) -> Iterator[_Step]:
    """The next form that takes at most half as much, if any."""
    for shorter in Form:
        if shorter > form and 2 * part.tokens[shorter] <= part.tokens[form]:
            saved = part.tokens[form] - part.tokens[shorter]
            yield _Step(-saved * age, age, shorter, saved, part)
            return
