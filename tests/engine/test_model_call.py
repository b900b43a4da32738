"""A reply goes back to the model as its provider gave it: the same blocks, in the same order."""

from threadkeep.engine.model_call import ModelCall
from threadkeep.ports.gateway import Block, TextBlock, ThinkingBlock, ToolUse, ToolUseBlock

SIGNER = "anthropic/claude-x"


def thinking(text: str, signature: str) -> ThinkingBlock:
    return ThinkingBlock(text, signature, SIGNER)


def blocks(call: ModelCall) -> tuple[Block, ...]:
    message, _ = call.finished(1).with_results((), as_blocks=True)
    assert message.role == "assistant"
    return message.blocks


def test_interleaved_blocks_keep_their_order():
    call = ModelCall(SIGNER)
    call.add_text("First ")
    call.add_text("this.")
    call.add_thought("Hm")
    call.add_thought(".")
    call.end_thought("s1")
    call.add_tool_use(ToolUse("1", "add", {"a": 1}))
    call.end_thought("redacted_thinking:data")
    call.add_thought("So.")
    call.end_thought("s2")
    call.add_tool_use(ToolUse("2", "add", {"a": 2}))
    call.add_text("Then that.")
    assert blocks(call) == (
        TextBlock("First this."),
        thinking("Hm.", "s1"),
        ToolUseBlock("1", "add", {"a": 1}),
        thinking("", "redacted_thinking:data"),
        thinking("So.", "s2"),
        ToolUseBlock("2", "add", {"a": 2}),
        TextBlock("Then that."),
    )
    assert "".join(call.written.texts) == "First this.Hm.So.Then that."


def test_reasoning_that_nobody_signed_does_not_go_back():
    call = ModelCall(SIGNER)
    call.add_thought("before a text")
    call.add_text("Yes.")
    call.add_thought("before a call")
    call.add_tool_use(ToolUse("1", "add", {}))
    call.add_thought("ended without a signature")
    call.end_thought("")
    call.add_thought("signed")
    call.end_thought("s")
    call.add_thought("at the end")
    assert blocks(call) == (TextBlock("Yes."), ToolUseBlock("1", "add", {}), thinking("signed", "s"))


def test_text_that_shows_nothing_does_not_go_back():
    call = ModelCall(SIGNER)
    call.add_text("\n\n")
    call.add_tool_use(ToolUse("1", "add", {}))
    call.add_text(" ")
    call.add_text("\u200b")
    assert blocks(call) == (ToolUseBlock("1", "add", {}),)


def test_looking_at_a_reply_in_progress_does_not_divide_its_text():
    call = ModelCall(SIGNER)
    call.add_text("Hel")
    assert blocks(call) == (TextBlock("Hel"),)
    call.add_text("lo")
    assert blocks(call) == (TextBlock("Hello"),)
