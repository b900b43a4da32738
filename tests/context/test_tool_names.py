"""Names that every provider takes, and that no two tools share."""

import re

from hypothesis import given
from hypothesis import strategies as st

from threadkeep.context.tool_names import outside_name, tools_by_name
from threadkeep.ports.tools import Tool

SENDABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")
WORDS = st.one_of(st.text(max_size=80), st.text("ab_-", min_size=1, max_size=6))
TOOLS = st.lists(st.tuples(WORDS, WORDS), unique=True, max_size=12)


def tool(server: str, name: str, *, is_own: bool = False) -> Tool:
    return Tool(server, name, "", {}, 0, is_own)


def test_readable_names_stay_readable():
    assert outside_name("web-search", "search") == "web-search__search"
    assert outside_name("文件", "读取").startswith("tool_")
    long = outside_name("files", "read_" * 30)
    assert long.startswith("files_read_read_")
    assert len(long) <= 64


@given(TOOLS)
def test_every_tool_has_a_name_of_its_own_that_providers_take(pairs: list[tuple[str, str]]):
    named = tools_by_name(tool(*pair) for pair in pairs)
    assert {(it.server, it.name) for it in named.values()} == set(pairs)
    assert all(SENDABLE.fullmatch(name) for name in named)


@given(TOOLS, TOOLS)
def test_name_does_not_depend_on_which_others_there_are(
    pairs: list[tuple[str, str]], others: list[tuple[str, str]]
):
    alone = tools_by_name(tool(*pair) for pair in pairs)
    together = tools_by_name(tool(*pair) for pair in dict.fromkeys([*others, *pairs]))
    assert alone.items() <= together.items()


def test_our_own_tools_keep_their_names_whatever_others_are_called():
    own = tool("promptx", "promptx_recall", is_own=True)
    strange = tool("promptx_recall", "x")
    named = tools_by_name([strange, tool("a", "promptx_recall"), own])
    assert [*named] == ["promptx_recall", "a__promptx_recall", "promptx_recall__x"]
    assert named["promptx_recall"] is own
