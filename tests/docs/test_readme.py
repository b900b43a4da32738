"""The README's agent is the tutorial's, and works as recorded (`python -m tests.browser.crash`)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, blocks
from threadkeep.agents import Agent
from threadkeep.testing import crash_everywhere, run_agent

BANK = """
async def find_order(text):
    return {"id": 7, "euros": 120}


async def refund(order):
    raise AssertionError("a test doesn't refund")


async def is_refunded(order):
    return True
"""


async def booked(order: object) -> None:
    """What the bank does in a test."""


def shop_of(page: Path) -> str:
    (code,) = (block.code for block in blocks(page) if block.file == "shop.py")
    return code


def test_tutorial_begins_with_the_agent_of_the_readme():
    assert shop_of(DOCS / "agents-in-code.md") == shop_of(ROOT / "README.md")


def test_help_of_the_first_command_installs_nothing(tmp_path: Path):
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "run", tmp_path / "scripts")
    done = subprocess.run(
        ["sh", tmp_path / "scripts" / "run", "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--port" in done.stdout
    assert [it.name for it in tmp_path.iterdir()] == ["scripts"]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    code = shop_of(ROOT / "README.md")
    (tmp_path / "bank.py").write_text(BANK)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "bank", raising=False)
    names: dict[str, Agent] = {}
    exec(compile(code, "README.md", "exec"), names)
    return names["orders"]


async def test_agent_of_the_readme_refunds_once_whatever_crashes(orders: Agent):
    no = await run_agent(orders, "Refund order 7.", answers=["no"])
    assert no.text == "Order 7 costs 120 euros. Nothing was refunded."
    crashed = ["before step_end refund", "after step_end refund"]
    report = await crash_everywhere(
        orders, "Refund order 7.", answers=["yes"], steps={"refund": booked}, only=crashed
    )
    report.check()
