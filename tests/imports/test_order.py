"""What another product's assistant said, thought and did comes in its order."""

from typing import Any

from tests.imports.foreign import DAY, chatgpt, claude, said
from tests.making import ALICE, NOW
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.domain.message import Message
from threadkeep.domain.parts import TextPart, ThoughtPart, ToolCallPart
from threadkeep.imports import chatgpt as of_chatgpt
from threadkeep.imports import claude as of_claude
from threadkeep.imports.conversion import convert_conversation
from threadkeep.imports.foreign import ForeignConversation

LONG = "x" * 20_000


def messages_of(reader: Any, value: dict[str, Any]) -> list[Message]:
    (foreign,) = (it for it in reader.read(value) if isinstance(it, ForeignConversation))
    whole, _ = convert_conversation(foreign, ALICE, AgentId(new_uuid()), NOW)
    return list(whole.messages)


def outline(message: Message) -> list[tuple[int, str, str]]:
    """Each part's iteration, kind and text."""
    lines: list[tuple[int, str, str]] = []
    for part in message.parts:
        match part:
            case TextPart() | ThoughtPart():
                lines.append((part.iteration, part.type, part.text))
            case ToolCallPart(call=call):
                lines.append((part.iteration, call.tool_call_id, f"{call.tool_name}: {call.result}"))
            case _:
                raise AssertionError(part)
    return lines


def blocks(*content: dict[str, Any]) -> dict[str, Any]:
    """A conversation of Claude with one question and this reply."""
    asked = {"uuid": "q", "sender": "human", "text": "How much?"}
    return claude(chat_messages=[asked, {"uuid": "a", "sender": "assistant", "content": list(content)}])


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": {}}


def gave(name: str, result: str) -> dict[str, Any]:
    return {"type": "tool_result", "name": name, "content": result}


def test_claude_keeps_text_thoughts_and_tools_in_order():
    _, reply = messages_of(
        of_claude,
        blocks(
            {"type": "thinking", "thinking": "Hm."},
            text("Numbers first."),
            use("add"),
            use("sub"),
            gave("sub", "1"),
            gave("add", "3"),
            text("Now the handbook."),
            use("read"),
            gave("read", "grew"),
            text("Revenue grew."),
        ),
    )
    assert outline(reply) == [
        (1, "thought", "Hm."),
        (1, "text", "Numbers first."),
        (1, "call_1", "add: 3"),
        (1, "call_2", "sub: 1"),
        (2, "text", "Now the handbook."),
        (2, "call_3", "read: grew"),
        (3, "text", "Revenue grew."),
    ]
    assert reply.content == "Numbers first.\n\nNow the handbook.\n\nRevenue grew."


def test_texts_of_claude_never_run_together_whatever_lies_between():
    thought = {"type": "thinking", "thinking": "Hm."}
    _, reply = messages_of(
        of_claude, blocks(text("One."), text("Two."), thought, text("Three."), {"type": "odd"})
    )
    assert reply.content == "One.\n\nTwo.\n\nThree."
    assert [kind for _, kind, _ in outline(reply)] == ["text", "thought", "text"]


def test_chatgpt_keeps_text_thoughts_and_tools_in_order():
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Law", "content": "Hm."}]}
    by_tool = {"author": {"role": "tool", "name": "search"}}
    _, reply = messages_of(
        of_chatgpt,
        chatgpt(
            {
                "q": (None, said("user", "What grew?", at=DAY)),
                "a": ("q", said("assistant", "Numbers first.", at=DAY + 1)),
                "c": ("a", said("assistant", '{"q": 1}', at=DAY + 2, recipient="search")),
                "r": ("c", said("tool", "three", at=DAY + 3) | by_tool),
                "t": ("r", said("assistant", at=DAY + 4) | {"content": thoughts}),
                "c2": ("t", said("assistant", "{}", at=DAY + 5, recipient="search")),
                "r2": ("c2", said("tool", "four", at=DAY + 6) | by_tool),
                "r3": ("r2", said("tool", "five", at=DAY + 7) | by_tool),
                "e": ("r3", said("assistant", "Revenue grew.", at=DAY + 8)),
            },
            "e",
        ),
    )
    assert outline(reply) == [
        (1, "text", "Numbers first."),
        (1, "call_1", "search: three"),
        (2, "thought", "Law\n\nHm."),
        (2, "call_2", "search: four"),
        (3, "call_3", "search: five"),
        (4, "text", "Revenue grew."),
    ]
    assert reply.tool_calls[0].arguments == {"q": 1}


def test_call_without_a_result_stays_where_it_was_made():
    _, reply = messages_of(
        of_chatgpt,
        chatgpt(
            {
                "q": (None, said("user", "What grew?", at=DAY)),
                "c": ("q", said("assistant", "{}", at=DAY + 1, recipient="search")),
                "e": ("c", said("assistant", "I cannot search.", at=DAY + 2)),
            },
            "e",
        ),
    )
    assert outline(reply) == [(1, "call_1", "search: None"), (1, "text", "I cannot search.")]


def test_ids_of_calls_are_unique_in_a_conversation_and_messages_follow_each_other():
    value = blocks(use("add"), gave("add", LONG), text("So."))
    value["chat_messages"] += [
        {"uuid": "q2", "sender": "human", "text": "And?"},
        {"uuid": "a2", "sender": "assistant", "content": [use("add"), gave("add", "2"), text("More.")]},
    ]
    messages = messages_of(of_claude, value)
    assert [call.tool_call_id for it in messages for call in it.tool_calls] == ["call_1", "call_2"]
    assert [it.parent_id for it in messages] == [None, *(it.id for it in messages[:-1])]


def test_replies_that_were_regenerated_are_off_the_path_beside_the_one_that_counts():
    nodes = {
        "q": (None, said("user", "Why?", at=DAY)),
        "old": ("q", said("assistant", "No idea.", at=DAY + 1)),
        "new": ("q", said("assistant", "Because.", at=DAY + 2)),
        "q2": ("new", said("user", "Really?", at=DAY + 3)),
    }
    asked, old, new, again = messages_of(of_chatgpt, chatgpt(nodes, "q2"))
    assert [it.shown_status for it in (asked, old, new, again)] == [
        "COMPLETED",
        "OVERWRITTEN",
        "COMPLETED",
        "COMPLETED",
    ]
    assert old.parent_id == new.parent_id == asked.id
    assert again.parent_id == new.id


def test_reply_that_only_thought_was_stopped():
    _, reply = messages_of(of_claude, blocks({"type": "thinking", "thinking": "Hm."}, text(" ")))
    assert (reply.status, outline(reply)) == ("CANCELLED", [(1, "thought", "Hm.")])
