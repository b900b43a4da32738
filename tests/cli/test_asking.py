"""What turns ask their users, asked in a terminal."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from threadkeep.cli.asking import FORM_KEYS, LONG_TOOL_KEYS, Read, TypedDecision, ask, readable
from threadkeep.domain.approval import ApprovalKind
from threadkeep.wire.approvals import ApprovalView


class Person:
    """Somebody who types these lines, and what they see."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.shown: list[str] = []

    def read(self, prompt: str, begin_with: str) -> str:
        self.shown.append(f"{prompt}{begin_with}")
        return self._lines.pop(0)

    def answer(self, asked: ApprovalView) -> TypedDecision:
        reply = ask(asked, Read(self.read), self.shown.append)
        assert not self._lines
        return reply


def request(kind: ApprovalKind, **fields: Any) -> ApprovalView:
    at = "2026-11-16T12:00:00.000Z"
    return ApprovalView(
        request_id="r", turn_id="t", conversation_id="c", conversation_title="Tea", agent_id="a",
        kind=kind, message="?", created_at=at,
        expires_at=at, **fields,
    )  # fmt: skip


def form(properties: Mapping[str, Any], required: Sequence[str] = ()) -> ApprovalView:
    schema = {"type": "object", "properties": properties, "required": required}
    return request(ApprovalKind.ELICITATION, schema=schema)


NOTE = request(ApprovalKind.TOOL, arguments={"text": "tea\nmilk", "count": 2})


@pytest.mark.parametrize(
    ("lines", "reply"),
    [
        (["y"], TypedDecision(action="allow")),
        (["?", "", "A"], TypedDecision(action="allow", scope="conversation")),
        (["n"], TypedDecision(action="deny")),
        (["e", '{"text": "coffee"}'], TypedDecision(action="edit", arguments={"text": "coffee"})),
        (["e", "{", "e", "[]", "e", "", "n"], TypedDecision(action="deny")),
    ],
)
def test_tool_is_allowed_denied_or_edited(lines: list[str], reply: TypedDecision):
    assert Person(*lines).answer(NOTE) == reply


def test_arguments_are_shown_as_people_read_them():
    person = Person("y")
    person.answer(NOTE)
    assert person.shown[0] == "    text: tea\n      milk\n    count: 2"


def test_what_is_edited_begins_with_the_arguments():
    person = Person("e", '{"text": "x"}')
    person.answer(NOTE)
    assert person.shown[-1].endswith('{"text": "tea\\nmilk", "count": 2}')


def test_nothing_hides_in_what_is_allowed():
    person = Person("e", '{"a": 1}')
    hiding = {"path": "a\u202etxt.exe\x9b2J", "tag": "ok\U000e0041\r\u200b"}
    person.answer(request(ApprovalKind.TOOL, arguments=hiding))
    assert person.shown[0] == ("    path: a\\u202etxt.exe\\u009b2J\n    tag: ok\\udb40\\udc41\\r\\u200b")
    assert json.loads(person.shown[-1].partition("JSON: ")[2]) == hiding


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": f"ls{' ' * 5000}; rm -r ."},
        {"command": "ls" + "\n" * 30 + "; rm -r ."},
        {"command": "茶" * 1000 + "; rm -r ."},
        {**{f"option{at}": at for at in range(30)}, "then": "; rm -r ."},
        {"command": "ls" + "\u200b" * 400 + "; rm -r ."},
    ],
)
def test_call_can_be_allowed_only_after_all_of_its_arguments_were_shown(
    arguments: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
):

    def size(fallback: tuple[int, int] = (80, 24)) -> os.terminal_size:
        return os.terminal_size(fallback)

    monkeypatch.setattr("shutil.get_terminal_size", size)
    asked = request(ApprovalKind.TOOL, arguments=arguments)
    person = Person("y", "a", "s", "y")
    assert person.answer(asked) == TypedDecision(action="allow")
    first, *_, whole, _ = person.shown
    assert "characters not shown" in first
    assert first.endswith("; rm -r .")  # its end is visible at once
    assert first.count("\n") < 24
    assert whole == readable(arguments)
    assert person.shown.count(LONG_TOOL_KEYS) == 3
    assert Person("n").answer(asked) == TypedDecision(action="deny")


def test_question_is_answered_with_a_line_or_declined():
    asked = request(ApprovalKind.QUESTION)
    assert Person("Blue").answer(asked) == TypedDecision(action="answer", content="Blue")
    assert Person("").answer(asked) == TypedDecision(action="deny")


@pytest.mark.parametrize(
    ("line", "content"),
    [
        ("2", "Green"),
        ("green", "Green"),
        ("g", "Green"),
        ("3", "3"),
        ("Red", "Red"),
        ("Blue sky", "Blue sky"),
    ],
)
def test_choice_is_taken_by_its_number_or_its_name(line: str, content: str):
    asked = request(ApprovalKind.QUESTION, schema={"type": "string", "enum": ["Blue", "Green"]})
    person = Person(line)
    assert person.answer(asked) == TypedDecision(action="answer", content=content)
    assert person.shown[0] == "    1. Blue\n    2. Green"


def test_address_is_opened_and_confirmed_or_declined():
    asked = request(ApprovalKind.ELICITATION, url="https://bank.example/pay")
    person = Person("what?", "")
    assert person.answer(asked) == TypedDecision(action="answer")
    assert person.shown[0] == "    https://bank.example/pay"
    assert Person("n").answer(asked) == TypedDecision(action="deny")


def test_call_that_another_client_runs_can_only_be_denied():
    person = Person("y", "n")
    asked = request(ApprovalKind.CLIENT_TOOL, arguments={"color": "red"})
    assert person.answer(asked) == TypedDecision(action="deny")
    assert person.shown[0] == "    color: red"


def test_form_is_filled_in_field_by_field():
    person = Person("Ann", "x", "3", "1.5", "maybe", "y", "2", "1, C", "y")
    asked = form(
        {
            "name": {"type": "string", "title": "Your name", "description": "As in your passport."},
            "nights": {"type": "integer"},
            "budget": {"type": "number"},
            "smoker": {"type": "boolean"},
            "room": {"type": "string", "enum": ["b", "g"], "enumNames": ["Blue", "Green"]},
            "extras": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "c"}]}},
        },
        ["name"],
    )
    content = {"name": "Ann", "nights": 3, "budget": 1.5, "smoker": True, "room": "g", "extras": ["a", "c"]}
    assert person.answer(asked) == TypedDecision(action="answer", content=content)
    assert "  As in your passport." in person.shown
    assert "  Your name (required): " in person.shown
    assert "  nights (whole number, optional): " in person.shown
    assert "  That isn't a whole number." in person.shown
    assert "    1. Blue\n    2. Green" in person.shown


def test_defaults_and_optional_fields_are_taken_by_an_empty_line():
    asked = form(
        {
            "city": {"type": "string", "oneOf": [{"const": "o", "title": "Oslo"}], "default": "o"},
            "quiet": {"type": "boolean", "default": False},
            "note": {"type": "string"},
            "name": {"type": "string"},
        },
        ["name"],
    )
    person = Person("", "", "", "", "Ann", "y")
    assert person.answer(asked) == TypedDecision(
        action="answer", content={"city": "o", "quiet": False, "name": "Ann"}
    )
    assert "  city (a number, optional, Enter for Oslo): " in person.shown
    assert "  quiet (y or n, optional, Enter for n): " in person.shown
    assert "  An answer is required." in person.shown


def test_form_is_changed_before_it_is_sent_or_declined():
    asked = form({"name": {"type": "string"}}, ["name"])
    person = Person("An", "c", "Ann", "y")
    assert person.answer(asked) == TypedDecision(action="answer", content={"name": "Ann"})
    assert person.shown.count(FORM_KEYS) == 2
    assert "  name (required, Enter for An): " in person.shown
    assert Person("Ann", "n").answer(asked) == TypedDecision(action="deny")


def test_form_without_fields_is_a_confirmation():
    assert Person("y").answer(form({})) == TypedDecision(action="answer", content={})
