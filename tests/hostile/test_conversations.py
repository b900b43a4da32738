"""Strangers' conversations keep nobody busy: twice the blocks, branches or files are twice the work."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.hostile.work import counted
from tests.imports.foreign import chatgpt, claude, said
from tests.making import ALICE, NOW
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.domain.import_run import ImportProblem
from threadkeep.imports import chatgpt as chatgpt_reader
from threadkeep.imports import claude as claude_reader
from threadkeep.imports import tree
from threadkeep.imports.checks import check_whole
from threadkeep.imports.conversion import convert_conversation
from threadkeep.imports.foreign import ForeignConversation

MOST_GROWTH = 2.3
Json = dict[str, Any]


def _replying(*blocks: Json, **more: Any) -> Json:
    asked = {"uuid": "q", "sender": "human", "text": "?"}
    reply = {"uuid": "a", "sender": "assistant", "content": list(blocks), "parent_message_uuid": "q"}
    return claude(chat_messages=[asked, reply | more])


def _call(name: str) -> Json:
    return {"type": "tool_use", "name": name, "input": {}}


def _result(name: str) -> Json:
    return {"type": "tool_result", "name": name, "content": "x"}


def _text(text: str = "x" * 50) -> Json:
    return {"type": "text", "text": text}


def _chain(count: int, role: str) -> dict[str, tuple[str | None, Json | None]]:
    return {f"n{at}": (f"n{at - 1}" if at else None, said(role, "x")) for at in range(count)}


def _fan(count: int, role: str, leaf: str) -> Json:
    """A long path that forks at its end as often as is allowed."""
    nodes = _chain(count, role)
    for at in range(50):
        nodes[f"leaf{at}"] = (f"n{count - 1}", said(leaf, "x"))
    return chatgpt(nodes, "leaf0")


def _comb(count: int) -> Json:
    """A path with a branch at each of its questions."""
    nodes = _chain(count, "user")
    for at in range(count):
        nodes[f"side{at}"] = (f"n{at}", said("assistant", "x"))
    return chatgpt(nodes, f"n{count - 1}")


def _attached(count: int) -> list[Json]:
    return [{"file_name": f"f{at}", "extracted_content": "x" * 50} for at in range(count)]


def _pointer(at: int) -> Json:
    return {"content_type": "image_asset_pointer", "asset_pointer": f"file-service://file-{at}"}


HOSTILE: dict[str, Callable[[int], Json]] = {
    "calls of one name, results of another": lambda n: _replying(*[_call("a")] * n, *[_result("b")] * n),
    "calls, then their results": lambda n: _replying(*[_call("a")] * n, *[_result("a")] * n),
    "calls of many names, results backwards": lambda n: _replying(
        *(_call(f"t{at}") for at in range(n)), *(_result(f"t{at}") for at in reversed(range(n)))
    ),
    "texts in a row": lambda n: _replying(*[_text()] * n),
    "texts in a row after a call": lambda n: _replying(_call("a"), _result("a"), *[_text()] * n),
    "texts of a question": lambda n: claude(
        chat_messages=[{"uuid": "q", "sender": "human", "content": [_text()] * n}]
    ),
    "attachments": lambda n: claude(
        chat_messages=[{"uuid": "q", "sender": "human", "text": "?", "attachments": _attached(n)}]
    ),
    "images that are missing": lambda n: chatgpt(
        {"q": (None, said("user", "?")), "a": ("q", said("assistant", *map(_pointer, range(n))))}, "a"
    ),
    "results without calls": lambda n: chatgpt(
        {"q": (None, said("user", "?"))}
        | {f"n{at}": (f"n{at - 1}" if at else "q", said("tool", "x")) for at in range(n)},
        None,
    ),
    "calls without results": lambda n: chatgpt(
        {"q": (None, said("user", "?"))}
        | {f"n{at}": (f"n{at - 1}" if at else "q", said("assistant", recipient="t")) for at in range(n)},
        None,
    ),
    "a long path": lambda n: chatgpt(_chain(n, "user"), None),
    "a long reply in many branches": lambda n: _fan(n, "assistant", "assistant"),
    "many questions after a long reply": lambda n: _fan(n, "assistant", "user"),
    "many questions after a long path": lambda n: _fan(n, "user", "user"),
    "a branch at each question": _comb,
}  # fmt: skip


def _read(value: Json) -> list[ForeignConversation | ImportProblem]:
    return list((chatgpt_reader if "mapping" in value else claude_reader).read(value))


def _work_on(value: Json) -> int:
    with counted(lines=True) as work:
        for found in _read(value):
            if isinstance(found, ForeignConversation):
                whole, _ = convert_conversation(found, ALICE, AgentId(new_uuid()), NOW)
                check_whole(whole)
    return work.total


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_conversation_is_twice_the_work_at_most(name: str):
    once, twice = (_work_on(HOSTILE[name](count)) for count in (200, 400))
    assert twice <= MOST_GROWTH * once, f"{once}, then {twice}"


@pytest.mark.parametrize("name", ["texts in a row", "attachments", "images that are missing"])
def test_a_text_of_many_pieces_is_put_together_once(name: str, monkeypatch: pytest.MonkeyPatch):
    """Copies of a growing text are no steps of ours."""
    copied: list[int] = []

    def counting(value: Any, **changes: Any) -> Any:
        copied.append(len(changes.get("text", "")))
        return replace(value, **changes)

    for module in ("imports.foreign", "imports.replies", "imports.conversion"):
        monkeypatch.setattr(f"threadkeep.{module}.replace", counting)
    _work_on(HOSTILE[name](400))
    assert sum(copied) <= 400 * 100


def test_conversation_of_too_many_steps_is_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tree, "MOST_STEPS", 10)
    for large in (_replying(*[_text()] * 9), chatgpt(_chain(11, "user"), None)):
        with pytest.raises(tree.TooManySteps, match="more than 10 steps"):
            _read(large)


def test_branches_that_repeat_a_long_reply_are_left_out_once_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(tree, "MOST_STEPS", 200)
    found, flawed = _read(_fan(30, "assistant", "assistant"))
    assert isinstance(found, ForeignConversation) and isinstance(flawed, ImportProblem)
    assert (len(found.messages), flawed.why) == (3, "47 of its branches exceed the limit")
    assert found.last == "leaf0"
