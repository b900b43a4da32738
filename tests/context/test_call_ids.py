"""Ids of tool calls: every provider takes them back, and no two calls of a conversation share one."""

import re
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from threadkeep.context.call_ids import CallIds
from threadkeep.ports.gateway import ModelMessage, TextBlock, ToolResultBlock, ToolUse, ToolUseBlock

SENDABLE = re.compile(r"[A-Za-z0-9_-]{1,40}")


class Earlier:
    """The calls of a conversation's earlier turns, and what was asked about them."""

    def __init__(self, *ids: str) -> None:
        self.lookups: list[Collection[str]] = []
        self._ids = set(ids)

    async def __call__(self, ids: Collection[str]) -> Collection[str]:
        self.lookups.append(ids)
        return self._ids & set(ids)


async def settle(call_ids: CallIds, *ids: str) -> list[str]:
    """The ids that a reply's calls get."""
    uses = [ToolUse(use_id, "add", {"number": number}) for number, use_id in enumerate(ids)]
    settled = [await call_ids.settle(use) for use in uses]
    assert [use.arguments["number"] for use in settled] == [*range(len(ids))]
    return [use.id for use in settled]


async def test_id_that_every_provider_takes_is_kept():
    ids = ["toolu_01A-b", "x", "9" * 40]
    assert await settle(CallIds(()), *ids) == ids


async def test_id_that_a_provider_would_refuse_is_replaced():
    ids = ["", "x" * 41, "a b", "a.b", "工具", "a\x00", "\ud83d", "a\n", "functions.add:0"]
    settled = await settle(CallIds(()), *ids)
    assert all(SENDABLE.fullmatch(use_id) for use_id in settled)
    assert len(set(settled)) == len(ids)


async def test_second_of_two_equal_ids_in_one_reply_is_replaced():
    first, second, third = await settle(CallIds(()), "call_1", "call_1", "call_1")
    assert first == "call_1"
    assert len({first, second, third}) == 3


async def test_id_that_the_turn_has_used_is_replaced():
    call_ids = CallIds(())
    assert await settle(call_ids, "call_1") == ["call_1"]
    (again,) = await settle(call_ids, "call_1")
    assert again != "call_1"


async def test_id_that_the_request_holds_is_replaced_without_a_lookup():
    asked = ModelMessage("assistant", (TextBlock("Yes."), ToolUseBlock("call_1", "add", {})))
    answered = ModelMessage("user", (ToolResultBlock("call_1", "2", is_error=False),))
    earlier = Earlier()
    (settled,) = await settle(CallIds((asked, answered), earlier), "call_1")
    assert settled != "call_1"
    assert earlier.lookups == []


async def test_id_of_an_earlier_turn_that_the_request_leaves_out_is_replaced():
    settled = await settle(CallIds((), Earlier("call_1")), "call_1", "call_2")
    assert settled[0] != "call_1"
    assert settled[1] == "call_2"


async def test_200_calls_of_one_reply_are_looked_up_once_each():
    earlier = Earlier("call_7")
    ids = [f"call_{number}" for number in range(199)]
    settled = await settle(CallIds((), earlier), *ids, "call_0")
    assert [list(asked) for asked in earlier.lookups] == [[id_] for id_ in ids]
    assert len(set(settled)) == 200
    assert [at for at, use_id in enumerate(ids) if settled[at] != use_id] == [7]


async def test_reply_without_calls_takes_no_lookup():
    earlier = Earlier()
    assert await settle(CallIds((), earlier)) == []
    assert earlier.lookups == []


odd_ids = st.lists(st.sampled_from(["", "a", "b", "call_1", "a b", "x" * 41]) | st.text(max_size=45))


@given(st.lists(odd_ids, max_size=4), st.sets(st.sampled_from(["a", "b", "call_1"])))
async def test_settled_ids_are_sendable_and_unique_and_kept_where_they_can_be(
    answers: list[list[str]], earlier: set[str]
):
    call_ids, used = CallIds((), Earlier(*earlier)), set(earlier)
    for ids in answers:
        for wanted, settled in zip(ids, await settle(call_ids, *ids), strict=True):
            assert SENDABLE.fullmatch(settled)
            assert settled not in used
            assert settled == wanted or wanted in used or not SENDABLE.fullmatch(wanted)
            used.add(settled)
