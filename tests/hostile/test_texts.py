"""Hostile texts keep nobody busy: each function that reads them does linear work, or looks at a part."""

import io
import json
from collections.abc import Callable

import msgspec
import pytest

from tests.hostile.texts import NAMES, hostile_text
from tests.hostile.work import counted
from tests.making import ALICE, NOW
from threadkeep.domain.chart import read_chart
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, MemoryId, new_uuid
from threadkeep.domain.memory import MOST_CHARACTERS, Memory
from threadkeep.domain.text import check_line, check_storable, is_blank, storable
from threadkeep.engine import values
from threadkeep.engine.compaction import extract
from threadkeep.engine.large_values import safe_file_name, safe_media_type
from threadkeep.engine.prompt import Source, assemble
from threadkeep.engine.titles import derive_title
from threadkeep.engine.token_estimates import estimate_tokens
from threadkeep.engine.tool_names import outside_name
from threadkeep.exchange.items import items
from threadkeep.gateways.sse import EventReader
from threadkeep.gateways.tool_calls import sendable_name
from threadkeep.http.decoding import decode_body
from threadkeep.http.reports.handlers import disposition
from threadkeep.http.reports.text import value_text
from threadkeep.protocols.sse import frame
from threadkeep.retrieval import terms
from threadkeep.retrieval.extract import Section
from threadkeep.retrieval.questions import asked_terms
from threadkeep.retrieval.split import split
from threadkeep.retrieval.stem import stem
from threadkeep.tools.dpml import Resource, compose
from threadkeep.tools.recollection import find

_decoder = msgspec.json.Decoder(dict[str, object])


def _extract(text: str) -> object:
    begun = Conversation.start(ALICE, AgentId(new_uuid()), NOW).begin_turn(f"{text}?", NOW, model="m")
    return extract(None, [begun.user_message])


def _recall(text: str) -> object:
    parts = (text[at : at + MOST_CHARACTERS // 2] for at in range(0, len(text), MOST_CHARACTERS // 2))
    memories = [Memory(MemoryId(new_uuid()), f"{part} x", (), NOW) for part in parts]
    return find("a zebra", memories, terms, most=10)


def _compose(text: str) -> object:
    thought = Resource("thought", "t", "/roles", text)
    return compose(
        "r", [Resource("role", "r", "/roles", f"# {text}\n<role>@!thought://t {text}</role>"), thought]
    )


def _chart(text: str) -> object:
    return read_chart({"kind": "bar", "rows": [{"x": text, "y": 1, text: 2}], "title": text})


# Every function of ours that reads what others wrote: messages, titles, tool results, prompts, role files,
# documents, reports, bodies, and what models and imports send.
READERS: dict[str, Callable[[str], object]] = {
    "stem": lambda text: stem(text.casefold()),
    "terms": terms.terms,
    "query terms": terms.query_terms,
    "places of words": lambda text: list(terms.spans(text, frozenset({"zebra", "违约"}))),
    "question": asked_terms,
    "document": lambda text: list(split([Section(text), Section(text, heading="h")])),
    "title": derive_title,
    "extract": _extract,
    "prompt": lambda text: assemble([Source("a", text), Source("b", f"{text} ", unread=9)]),
    "recollection": _recall,
    "role": _compose,
    "chart": _chart,
    "value of a tool": lambda text: values.clean({text: [text, {"a": text}]}),
    "value in a report": lambda text: value_text({"a": [text]}),
    "text in a report": value_text,
    "file name": lambda text: (safe_file_name(text, "text/plain"), safe_media_type(text), disposition(text)),
    "tool name": lambda text: (outside_name(text, text), sendable_name(text)),
    "blank": is_blank,
    "storable": lambda text: (check_storable(text, "a"), storable(text), estimate_tokens(text)),
    "line": lambda text: check_line(f"{text}x", "a", most=10**9),
    "body": lambda text: decode_body(json.dumps({"content": text}).encode(), _decoder),
    "frame": lambda text: frame(text),
    "stream of a model": lambda text: EventReader().feed(f"data: {text}\n\n".encode()),
    "import": lambda text: list(items(io.BytesIO(msgspec.json.encode([{"a": text}])), most=10**9)),
}
CHARACTERS = 2_000
MEGABYTE = 1_000_000
MOST_GROWTH = 2.3
LITTLE_WORK = 10_000
LARGE = (
    "one long word", "nested brackets", "only vowels", "only spaces", "combining marks", "right to left",
    "Chinese",
)  # fmt: skip


def work_on(reader: Callable[[str], object], name: str, length: int, *, lines: bool) -> int:
    text = hostile_text(name, length)
    with counted(lines=lines) as work:
        reader(text)
    return work.total


@pytest.mark.parametrize("reader", READERS)
def test_twice_the_text_is_twice_the_work_at_most(reader: str):
    for name in NAMES:
        once, twice = (
            work_on(READERS[reader], name, length, lines=True) for length in (CHARACTERS, 2 * CHARACTERS)
        )
        assert twice <= MOST_GROWTH * max(once, LITTLE_WORK), f"{name}: {once}, then {twice}"


@pytest.mark.parametrize("reader", READERS)
def test_a_megabyte_is_no_more_than_its_share(reader: str):
    """What is not written in Python gets each character a few times; of marks, which it sorts, only a few."""
    for name in LARGE:
        few = work_on(READERS[reader], name, CHARACTERS, lines=False)
        many = work_on(READERS[reader], name, MEGABYTE, lines=False)
        assert many <= MEGABYTE / CHARACTERS * 1.5 * max(few, LITTLE_WORK), f"{name}: {few}, then {many}"
