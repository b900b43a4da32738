"""Hostile texts keep nobody busy: each function that reads them does linear work, or looks at a part."""

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from tests.context.histories import Conversation as Path
from tests.context.histories import call
from tests.hostile.texts import NAMES, hostile_text
from tests.hostile.work import counted
from tests.making import ALICE, NOW
from threadkeep.context.cards import CardStyle
from threadkeep.context.compaction import extract, extract_lines
from threadkeep.context.estimates import estimate_tokens
from threadkeep.context.prompt import Source, assemble
from threadkeep.context.request import ContextRules, Sources, build_request, to_context
from threadkeep.context.titles import derive_title
from threadkeep.context.tool_names import outside_name
from threadkeep.domain.chart import read_chart
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import InvalidRequest, RoleNotFound
from threadkeep.domain.events import Done, Text, ToolCalled, ToolResultStored, TurnEvent
from threadkeep.domain.ids import AgentId, ConversationId, MemoryId, MessageId, TurnId, new_uuid
from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.domain.memory import MOST_CHARACTERS, Memory
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import TextPart, ToolCallPart
from threadkeep.domain.text import check_line, check_storable, is_blank, storable
from threadkeep.engine import json_values as values
from threadkeep.engine.large_values import safe_file_name, safe_media_type
from threadkeep.gateways.tool_calls import sendable_name
from threadkeep.http.reports.handlers import disposition
from threadkeep.http.reports.text import value_text
from threadkeep.imports.items import items
from threadkeep.ports.gateway import ToolSpec
from threadkeep.protocols.agentx.cursor import parse_cursor
from threadkeep.protocols.agentx.encode import AgentXTurn
from threadkeep.protocols.dialect import TurnContext
from threadkeep.retrieval.extract import Section
from threadkeep.retrieval.questions import asked_terms
from threadkeep.retrieval.split import split
from threadkeep.search import terms
from threadkeep.search.query import read_query
from threadkeep.search.stem import stem
from threadkeep.sse import EventReader, frame
from threadkeep.tools.dpml import Resource, compose
from threadkeep.tools.recollection import find
from threadkeep.tools.results import find_places
from threadkeep.wire.decoding import decode_body
from threadkeep.wire.messages import message_view

TURN = TurnId("t")
RULES = ContextRules(CardStyle(), context_tokens=10**9)
_decoder = msgspec.json.Decoder(dict[str, object])


def _extract(text: str) -> object:
    begun = Conversation.start(ALICE, AgentId(new_uuid()), NOW).begin_turn(f"{text}?", NOW, model="m")
    assert begun.user_message
    return extract(None, extract_lines(begun.user_message))


def _recall(text: str) -> object:
    parts = (text[at : at + MOST_CHARACTERS // 2] for at in range(0, len(text), MOST_CHARACTERS // 2))
    memories = [Memory(MemoryId(new_uuid()), f"{part} x", (), NOW) for part in parts]
    return find("a zebra", memories, terms, most=10)


def _compose(text: str) -> object:
    with contextlib.suppress(RoleNotFound):
        compose(text, [Resource("role", "r", "/roles", f"# {text}\n@!thought://{text}")])
    thought = Resource("thought", "t", "/roles", f"{text}@!thought://{text}")
    return compose(
        "r", [Resource("role", "r", "/roles", f"# {text}\n<role>@!thought://t {text}</role>"), thought]
    )


def _path(text: str) -> Path:
    """A question, a reply with a tool's result, and many questions in a row, all of this text."""
    path = Path()
    path.ask(text)
    used = call("a", text, arguments={"a": text}, tool_name=text, model_name=text)
    path.reply(ToolCallPart(call=used, iteration=1), TextPart(text=text, iteration=2))
    for start in range(0, len(text), 500):
        path.ask(text[start : start + 500] + "x")
    return path


def _request(text: str) -> object:
    path = _path(text).messages
    sources = Sources(path, path[-1].id, tools=[ToolSpec("t", text, {})])
    first = build_request(sources, RULES)
    return build_request(replace(sources, prior=first.receipt), RULES)


def _agentx(text: str) -> object:
    turn = AgentXTurn(TurnContext(TURN, MessageId("m"), ConversationId("c"), AgentId("a")))
    bodies = (
        Text(text),
        ToolCalled("i", text, text, {"a": text}),
        ToolResultStored("i", text, "ok", text),
        Done("COMPLETED", MessageId("m"), Usage(0, 0), "end_turn"),
    )
    events = (TurnEvent(TURN, seq, NOW, body) for seq, body in enumerate(bodies, 1))
    return [it.json() for event in events for it in turn.envelopes(event)]


def _cursor(text: str) -> object:
    with contextlib.suppress(InvalidRequest):
        return parse_cursor(f"{text}:1:1")


def _chart(text: str) -> object:
    return read_chart({"kind": "bar", "rows": [{"x": text, "y": 1, text: 2}], "title": text})


# Every function of ours that reads what others wrote: messages, titles, tool results, prompts, role files,
# documents, reports, bodies, and what models and imports send.
READERS: dict[str, Callable[[str], object]] = {
    "stem": lambda text: stem(text.casefold()),
    "terms": terms.terms,
    "query terms": terms.query_terms,
    "query": read_query,
    "places of words": lambda text: list(read_query("违约 zebra").spans(text)),
    "text of Markdown": plain_text,
    "question": asked_terms,
    "document": lambda text: list(split([Section(text), Section(text, heading="h")])),
    "title": derive_title,
    "extract": _extract,
    "prompt": lambda text: assemble([Source("a", text), Source("b", f"{text} ", unread=9)]),
    "recollection": _recall,
    "role": _compose,
    "chart": _chart,
    "request": _request,
    "context as text": lambda text: to_context(
        _path(text).messages, summary=text, cards=CardStyle(), thoughts=True
    ),
    "recalled result": lambda text: (find_places(text, "a" * 200), find_places(text, text[:200])),
    "parts": lambda text: msgspec.json.encode([message_view(it) for it in _path(text).messages]),
    "agentx": _agentx,
    "agentx cursor": _cursor,
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
MANY = 200_000
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
def test_a_hundred_times_the_text_is_no_more_than_its_share(reader: str):
    """What is not written in Python gets each character a few times; of marks, which it sorts, only a few."""
    for name in LARGE:
        few = work_on(READERS[reader], name, CHARACTERS, lines=False)
        many = work_on(READERS[reader], name, MANY, lines=False)
        assert many <= MANY / CHARACTERS * 1.5 * max(few, LITTLE_WORK), f"{name}: {few}, then {many}"


def work_on_calls(count: int) -> int:
    path = Path()
    path.ask("x")
    calls = (ToolCallPart(call=call("the same id", "x"), iteration=1) for _ in range(count))
    path.reply(*calls, TextPart(text="x", iteration=2))
    path.ask("x")
    sources = Sources(path.messages, path.messages[-1].id, tools=[ToolSpec("t", "", {})])
    with counted(lines=True) as work:
        build_request(sources, RULES)
    return work.total


def test_twice_the_calls_with_one_id_are_twice_the_work_at_most():
    assert work_on_calls(800) <= MOST_GROWTH * work_on_calls(400)
