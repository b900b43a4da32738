"""A client's history as a model receives it."""

from typing import Any

from threadkeep.context.attachments import FileRules
from threadkeep.ports.gateway import TAKES_NO_FILES, TextBlock, ToolResultBlock, ToolSpec, ToolUseBlock
from threadkeep.services.completions.given import GivenCall, GivenMessage, GivenRules, model_messages

LOCATE = ToolSpec("locate", "Where.", {})


def rules(context_tokens: int = 10_000, **changes: Any) -> GivenRules:
    files = FileRules(TAKES_NO_FILES, context_tokens)
    usual: dict[str, Any] = {"files": files, "system": "Help.", "tools": (LOCATE,), "max_tokens": 10}
    return GivenRules(**usual | changes)


def user(text: str) -> GivenMessage:
    return GivenMessage(role="user", text=text)


def reply(text: str, *calls: GivenCall) -> GivenMessage:
    return GivenMessage(role="assistant", text=text, calls=calls)


def test_roles_alternate_and_nothing_is_lost():
    said = model_messages([reply("Welcome."), user("One"), user("Two"), reply(" "), reply("2")], rules())
    assert [it.role for it in said] == ["user", "assistant", "user", "assistant"]
    assert said[1:] == model_messages([reply("Welcome."), user("One"), user("Two"), reply("2")], rules())[1:]
    assert said[2].blocks == (TextBlock("One"), TextBlock("Two"))


def test_calls_have_ids_that_every_provider_accepts():
    odd = GivenCall("an id with spaces", "locate", {"near": "x"}, "Oslo")
    said = model_messages([user("Where?"), reply("", odd, odd), reply("", odd)], rules())
    used = [it.id for message in said for it in message.blocks if isinstance(it, ToolUseBlock)]
    answered = [
        it.tool_use_id for message in said for it in message.blocks if isinstance(it, ToolResultBlock)
    ]
    assert used == answered and len(set(used)) == 3 and all(" " not in it for it in used)


def test_model_without_tools_reads_calls_as_text():
    call = GivenCall("c1", "locate", {}, "Oslo")
    said = model_messages([user("Where?"), reply("", call)], rules(tools=()))
    texts = [it for message in said for it in message.blocks if isinstance(it, TextBlock)]
    assert len(texts) == sum(len(it.blocks) for it in said)
    assert "Oslo" in texts[-1].text


def test_oldest_questions_are_left_out_with_their_replies():
    call = GivenCall("c1", "locate", {}, "x" * 4_000)
    history = [user("First"), reply("", call), reply("Done."), user("Second"), reply("2"), user("Third")]
    assert len(model_messages(history, rules())) == 7
    assert model_messages(history, rules(1_000))[0].blocks == (TextBlock("Second"),)
    (only,) = model_messages([*history, user("x" * 9_000)], rules(1_000))
    assert only.role == "user"
