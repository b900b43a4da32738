"""The demonstration model knows what it cannot do."""

from collections.abc import Callable

import msgspec
import pytest

from tests.gateways.asking import ask
from threadkeep.gateways.local import LocalGateway
from threadkeep.ports.gateway import ModelMessage, ModelRequest, ModelStopped, TextBlock, TextDelta


def asking(text: str) -> ModelRequest:
    return ModelRequest("", "", (ModelMessage("user", (TextBlock(text),)),))


class Parrot:
    """A llama that says one sentence for ever, until it is stopped."""

    def chat(self, body: bytes, take: Callable[[bytes], bool]) -> None:
        chunk = {
            "choices": [
                {"delta": {"content": "The sea is a place where the soul is free to roam and to love. "}}
            ]
        }
        while not take(msgspec.json.encode(chunk)):
            pass

    def close(self) -> None:
        """There is nothing to free."""


def _open(gateway: LocalGateway) -> Parrot:
    return Parrot()


async def test_demonstration_ends_when_it_goes_round_in_circles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LocalGateway, "_open", _open)
    gateway = LocalGateway()
    events, error = await ask(gateway, asking("Tell me about the sea."))
    await gateway.close()
    assert error is None
    assert events[-1] == ModelStopped("end_turn")
    assert 2 <= len(events) <= 6


@pytest.mark.parametrize(
    ("said", "told"), [("为什么天是蓝的？", "只会英文"), ("Почему небо синее?", "only understands English")]
)
async def test_demonstration_says_that_it_knows_no_other_language(said: str, told: str):
    gateway = LocalGateway()
    events, error = await ask(gateway, asking(said))
    assert error is None
    assert isinstance(events[0], TextDelta)
    assert told in events[0].text
