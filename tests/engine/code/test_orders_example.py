"""`examples/orders`: wherever it is killed, the refund happens once, and the user hears the truth."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.engine.code.in_memory import CodeTurn, answers, killed_everywhere
from tests.engine.in_memory import InMemoryGateway, Step
from threadkeep.domain.events import Done, Failed
from threadkeep.ports.gateway import ModelStopped, ModelUsage, TextDelta

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders" / "shop.py"


KIND = "It will be there soon."


def speaks() -> InMemoryGateway:
    """A model that says the same whenever it is asked."""
    said: list[Step] = [TextDelta(KIND), ModelUsage(10, 5), ModelStopped("end_turn")]
    return InMemoryGateway(*[said] * 9)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example, whose bank answers at once."""
    spec = importlib.util.spec_from_file_location("shop", EXAMPLE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "shop", module)
    spec.loader.exec_module(module)

    def at_once(_: float) -> None:
        pass

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=at_once))
    return module


async def test_order_is_refunded_once_wherever_the_process_dies(
    shop: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    banks: list[Path] = []

    def make() -> CodeTurn:
        banks.append(tmp_path / f"{len(banks)}.txt")
        monkeypatch.setattr(shop, "BANK", banks[-1])
        return CodeTurn([shop.orders], "Refund order 7.", gateway=speaks, answer=answers("yes"))

    whole, killed = await killed_everywhere(make)
    assert isinstance(whole.end, Done)
    assert " ".join(whole.shown.split()) == f"Order 7 costs 120 euros. It is refunded. {KIND}"
    assert len(killed) > 5
    for turn, bank in zip([whole, *killed], banks, strict=False):
        assert isinstance(turn.end, Done)
        booked = bank.read_text().splitlines() if bank.exists() else []
        assert len(booked) == (1 if turn.shown.endswith(KIND) else 0), turn.shown
    assert any("answer was lost" in turn.shown for turn in killed)


async def test_unknown_order_fails_with_a_sentence_for_the_user(shop: ModuleType):
    turn = await CodeTurn([shop.orders], "Refund order 9.").run()
    assert isinstance(turn.end, Failed)
    assert turn.end.message == "I don't know that order."
