"""What a model reads of a tool's result: all of it at first, a short form once room gets tight."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from threadkeep.domain.text import storable
from threadkeep.engine.token_estimates import estimate_tokens

MOST_RESULT_CHARACTERS = 20_000
"""Of a result, for the model; the record has all of it."""

SHORT_HEAD_CHARACTERS = 600
SHORT_TAIL_CHARACTERS = 200
LEAST_SHORTENED_TOKENS = 400
"""A smaller result would gain nothing from its short form."""

RECALL_RESULT = "recall_result"


_encode = msgspec.json.Encoder().encode


class SentResult(NamedTuple):
    """A result of an earlier turn as the model was sent it."""

    call_id: str
    text: str


def result_text(call_id: str, result: Any, error: str | None) -> str:
    """A result as the model is sent it in its own turn, and after it until it is shortened."""
    content = result if error is None else error
    text = content if isinstance(content, str) else _encode(content).decode()
    return cut_result(call_id, text)


def cut_result(call_id: str, text: str) -> str:
    """The beginning of a text that is too long for a request, and how to read on."""
    if len(text) <= MOST_RESULT_CHARACTERS:
        return text if text.isascii() and "\x00" not in text else storable(text)
    return storable(
        f"{text[:MOST_RESULT_CHARACTERS]}\n… [{len(text)} characters, cut here; "
        f'{RECALL_RESULT} with id "{call_id}" and offset {MOST_RESULT_CHARACTERS} returns more]'
    )


def shortened(tool_name: str, sent: SentResult) -> str:
    """The short form: what it was, how it begins and ends, and how to read it again."""
    head, tail = sent.text[:SHORT_HEAD_CHARACTERS], sent.text[-SHORT_TAIL_CHARACTERS:]
    return (
        f"[An earlier result of {tool_name}, shortened from {len(sent.text)} characters; "
        f'{RECALL_RESULT} with id "{sent.call_id}" returns it]\n{head}\n…\n{tail}'
    )


def choose_shortened(results: Sequence[SentResult], already: Collection[str], budget: int) -> frozenset[str]:
    """Which results, oldest first, are sent in their short form.

    What was short stays so. When the rest exceeds the budget, as many of the oldest as it takes are shortened
    at once to free half of it, so that the request's beginning changes seldom.
    """
    short = {it.call_id for it in results if it.call_id in already}
    if sum(len(it.text) for it in results) <= budget:  # a character is at most a token
        return frozenset(short)
    sizes = [(it.call_id, estimate_tokens(it.text)) for it in results if it.call_id not in short]
    total = sum(size for _, size in sizes)
    if total > budget:
        for call_id, size in _worth_shortening(sizes):
            if total <= budget // 2:
                break
            short.add(call_id)
            total -= size
    return frozenset(short)


def _worth_shortening(sizes: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return [it for it in sizes if it[1] >= LEAST_SHORTENED_TOKENS]
