"""Which of the items that a client adds its conversation has already."""

from typing import Any

import msgspec
import pytest

from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.openai import added_items, frames
from threadkeep.protocols.openai.added_items import Item, known_items
from threadkeep.protocols.openai.decode import SentContent, SentItem


def user(text: str, id_: str = "msg_u") -> Item:
    return frames.UserMessageItem(id_, (frames.InputText(text),))


def reply(text: str) -> Item:
    return frames.MessageItem("msg_a", "completed", (frames.OutputText(text),))


THOUGHT = frames.ReasoningItem("rs_1")
CALL = frames.FunctionCallItem("fc_1", "c1", "locate", "{}", "completed")
OUTPUT = frames.FunctionOutputItem("mcpr_1_output", "c1", "Bern")
SAID = {"role": "user", "content": "1"}
REPLIED = {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "One."}]}
CALLED = {"type": "function_call", "call_id": "c1", "name": "locate", "arguments": "{}"}
RETURNED = {"type": "function_call_output", "call_id": "c1", "output": "Bern"}
FILE = {
    "role": "user",
    "content": [{"type": "input_text", "text": "1"}, {"type": "input_file", "file_id": "f"}],
}

RUN = [[user("1")], [THOUGHT, CALL, OUTPUT, reply("One.")]]


@pytest.mark.parametrize(
    ("path", "sent", "known"),
    [
        ([], [SAID], 0),
        (RUN, [REPLIED], 1),
        (RUN, [SAID, CALLED, RETURNED, REPLIED], 4),  # the thought is left out
        (RUN, [CALLED, RETURNED], 2),  # saved while the turn went on
        (RUN, [{"type": "reasoning", "id": "rs_1"}, REPLIED, SAID], 2),
        (RUN, [SAID], 0),  # the user says the same again
        (RUN, [{"role": "assistant", "content": "Two."}], 0),
        (RUN, [{"type": "function_call", "call_id": "c2"}], 0),
        (RUN[:1], [SAID], 1),  # a request that was repeated
        (RUN[:1], [SAID, REPLIED], 1),
        (RUN[:1], [FILE], 0),
        ([*RUN, [user("2")], [reply("Two.")]], [CALLED, RETURNED, REPLIED], 0),  # not what it ends with
        ([*RUN, []], [REPLIED], 1),  # a card came after it
    ],
)
def test_what_a_list_begins_with_and_the_conversation_ends_with(path: Any, sent: list[Any], known: int):
    items = [msgspec.convert(it, SentItem) for it in sent]
    assert len(known_items(items, path)) == known


def test_each_text_is_read_once_and_each_pair_compared_once_per_prefix(monkeypatch: pytest.MonkeyPatch):
    read, whole = list[SentItem](), added_items.text_of

    def noting(item: SentItem) -> str:
        read.append(item)
        return whole(item)

    monkeypatch.setattr(added_items, "text_of", noting)
    texts = ["x" * 1_000 + str(n) for n in range(20)]
    path = [[user(text)] for text in texts for _ in range(3)]
    sent = [SentItem(role="user", content=text) for text in ["other", *texts[1:]]]
    assert not known_items(sent, path)
    assert len(read) == len(sent)


def test_item_with_too_many_parts_is_refused():
    parts = [SentContent(type="input_text", text="a")] * (added_items.MOST_PARTS_OF_AN_ITEM + 1)
    with pytest.raises(InvalidRequest):
        added_items.check_parts([SentItem(role="user", content=parts)])
    added_items.check_parts([SentItem(role="user", content=parts[1:])])
