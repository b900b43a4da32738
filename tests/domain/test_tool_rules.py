"""Rules for tools: the most precise one counts, for access and for effect by itself."""

import pytest

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.tool_rules import (
    MOST_RULES,
    Rules,
    ToolAccess,
    ToolEffect,
    ToolRule,
    access_of,
    check_rules,
    effect_of,
)

RULES: Rules = {
    "*": ToolRule(access=ToolAccess.ASK),
    "web.*": ToolRule(effect=ToolEffect.READ),
    "web.post": ToolRule(access=ToolAccess.DENY, effect=ToolEffect.WRITE),
    "web.search.v2": ToolRule(access=ToolAccess.ALLOW),
}


@pytest.mark.parametrize(
    ("server", "tool", "access", "effect"),
    [
        ("web", "post", ToolAccess.DENY, ToolEffect.WRITE),
        ("web", "search.v2", ToolAccess.ALLOW, ToolEffect.READ),
        ("web", "search", ToolAccess.ASK, ToolEffect.READ),
        ("webs", "post", ToolAccess.ASK, None),
    ],
)
def test_most_precise_rule_counts_for_each_of_the_two(
    server: str, tool: str, access: ToolAccess, effect: ToolEffect | None
):
    assert access_of(RULES, server, tool) is access
    assert effect_of(RULES, server, tool) is effect


def test_tool_of_which_no_rule_speaks_may_run():
    assert access_of({}, "web", "post") is ToolAccess.ALLOW
    assert effect_of({}, "web", "post") is None


@pytest.mark.parametrize("name", ["*", "web.*", "web.post", "web.search.v2", "web.搜索", "a-b_c.x y"])
def test_name_of_a_tool_a_server_or_all_is_taken(name: str):
    check_rules([name])


@pytest.mark.parametrize("name", ["", "web", "web.", ".post", "*.post", "-web.post", "web.\ud800", "w/b.x"])
def test_other_name_is_refused(name: str):
    with pytest.raises(InvalidRequest):
        check_rules([name])


def test_number_of_rules_is_bounded():
    check_rules([f"web.tool{number}" for number in range(MOST_RULES)])
    with pytest.raises(InvalidRequest, match="at most"):
        check_rules([f"web.tool{number}" for number in range(MOST_RULES + 1)])


def test_only_a_write_may_not_run_again():
    assert [effect.is_repeatable for effect in ToolEffect] == [True, True, False]
