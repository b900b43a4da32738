"""The Guide writes as a model does, piece by piece."""

import pytest

from threadkeep.gateways import guide
from threadkeep.gateways.guide import GuideGateway, next_call
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock, TextDelta, ToolSpec


@pytest.mark.parametrize("question", ["Hello!", "你好"])
async def test_pieces_of_a_text_are_the_text(question: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guide, "WORD_S", 0.0)
    messages = (ModelMessage("user", (TextBlock(question),)),)
    request = ModelRequest("", "", messages, (ToolSpec("t", "", {"type": "object"}),))
    pieces = [it.text async for it in GuideGateway().stream(request) if isinstance(it, TextDelta)]
    assert "".join(pieces) == next_call(messages).say
    assert len(pieces) > 50
