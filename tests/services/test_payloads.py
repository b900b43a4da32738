"""What was set aside for its size is put back into the parts of a message."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import msgspec
import pytest

from tests.wire.test_messages import CALL, message
from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import TextPart, ToolCallPart
from threadkeep.domain.payload import Lost
from threadkeep.services import payloads as services
from threadkeep.services.payloads import fitting, shown_messages
from threadkeep.storage.payloads.database import SqlPayloads
from threadkeep.wire.messages import message_view


class Payloads:
    """Contents by their ids; all others are lost."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents
        self.asked = 0

    async def load(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId], *, most_bytes: int | None = None
    ) -> Mapping[PayloadId, bytes | Lost]:
        self.asked += 1
        return {it: self._contents.get(it, Lost("The file is gone.")) for it in ids}

    async def sizes(
        self, conversation_id: ConversationId, ids: Iterable[PayloadId]
    ) -> Mapping[PayloadId, int]:
        return {it: len(self._contents[it]) for it in ids}


async def test_no_reference_reaches_a_client_and_what_is_lost_says_so():
    refs = {"result": PayloadId("p1"), "chart_data": PayloadId("p2"), "arguments": PayloadId("p3")}
    call = replace(CALL, arguments={}, result=None, refs=refs)
    parts = (
        ToolCallPart(call=call, iteration=1, superseded=True),
        ToolCallPart(call=replace(call, tool_call_id="c2"), iteration=1),
        TextPart(text="So.", iteration=2),
    )
    store = Payloads({"p1": b'{"rows": [1]}', "p3": b'{"q": "x"}'})
    (whole,) = await shown_messages(cast("SqlPayloads", store), [message(*parts)])
    seen = msgspec.json.decode(msgspec.json.encode(message_view(whole)))
    lost = {"unavailable": True, "reason": "The file is gone."}
    for shown in (*seen["parts"][:2], *seen["toolCalls"]):
        assert (shown["arguments"], shown["result"], shown["chartData"]) == ({"q": "x"}, {"rows": [1]}, lost)
    assert "refs" not in str(seen)


async def test_plain_messages_ask_for_nothing():
    store = Payloads({})
    plain = [message(TextPart(text="So."))] * 3
    assert await shown_messages(cast("SqlPayloads", store), plain) is plain
    assert store.asked == 0


async def test_page_has_the_first_messages_whose_values_fit_and_at_least_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "MOST_VALUE_BYTES", 100)
    sizes = {"p1": 60, "p2": 40, "p3": 1, "p4": 500}

    def page(*refs: str) -> list[Message]:
        calls = [replace(CALL, result=None, refs={"result": PayloadId(ref)}) for ref in refs]
        said = TextPart(text="So.", iteration=1)
        return [message(ToolCallPart(call=call, iteration=1), said) for call in calls]

    store = cast("SqlPayloads", Payloads({ref: b"0" * size for ref, size in sizes.items()}))
    for refs, count in (("p1 p2", 2), ("p1 p2 p3", 2), ("p3 p4 p1", 1), ("p4 p1", 1), ("p4", 1)):
        assert len(await fitting(store, page(*refs.split()))) == count
