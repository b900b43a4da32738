"""Which memories a question finds."""

import pytest

from threadkeep.domain.ids import MemoryId
from threadkeep.domain.memory import Memory
from threadkeep.search import terms as tokens
from threadkeep.tools.recollection import find

SAID = (
    "The user prefers short answers in bullet points.",
    "The user pays invoices on the fifteenth of each month.",
    "用户在杭州经营一家茶叶店。",
    "用户的合同纠纷由杭州仲裁委员会处理。",
    "Their daughter is called Mia.",
)
MEMORIES = [Memory(MemoryId(str(number)), text, ("home",), number) for number, text in enumerate(SAID)]


def found(query: str, most: int = 10) -> list[str]:
    return [memory.content for memory, _ in find(query, MEMORIES, tokens, most=most)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("How should answers be given?", SAID[0]),
        ("when is the payment of an invoice", SAID[1]),
        ("INVOICE", SAID[1]),
        ("茶叶", SAID[2]),
        ("他的茶叶店在哪里？", SAID[2]),
        ("仲裁", SAID[3]),
        ("合同争议找哪个仲裁委员会", SAID[3]),
        ("Mia", SAID[4]),
        ("daughter's name", SAID[4]),
    ],
)
def test_question_finds_its_memory_first(query: str, first: str):
    assert found(query)[0] == first


@pytest.mark.parametrize("query", ["quantum physics", "股票行情"])
def test_question_about_something_else_finds_nothing(query: str):
    assert found(query) == []


@pytest.mark.parametrize("query", ["", "what do you have about the user", "!?", "……"])
def test_question_without_a_subject_finds_the_newest(query: str):
    assert found(query, most=2) == list(SAID[:2])  # the newest come first


def test_more_of_the_question_is_better_and_newer_comes_first():
    assert found("杭州仲裁")[:2] == [SAID[3], SAID[2]]
    same = [Memory(MemoryId(str(number)), f"likes tea {number}", (), number) for number in range(3)]
    scored = find("tea", same, tokens, most=2)
    assert [(memory.id, score) for memory, score in scored] == [("2", 1.0), ("1", 1.0)]


def test_tags_are_found_too():
    assert len(found("home")) == len(SAID)


def test_nothing_remembered_finds_nothing():
    assert find("tea", [], tokens, most=5) == []
