"""Feedback as JSON lines: what a user may read, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.imports.making import opened_store
from tests.making import (
    ALICE,
    BOB,
    keep_agent,
    keep_conversation,
    keep_feedback,
    keep_receipt,
    keep_turn,
    make_receipt,
)
from threadkeep.cli.moving import export_feedback
from threadkeep.context.rendering import line_of
from threadkeep.domain.agent import Agent, Visibility
from threadkeep.domain.errors import AgentNotFound, StorageRefused, UserNotFound
from threadkeep.domain.feedback import Rating
from threadkeep.domain.ids import UserId
from threadkeep.domain.payload import text_hash
from threadkeep.domain.receipt import ComponentReceipt
from threadkeep.ports.gateway import ModelMessage, TextBlock
from threadkeep.settings import Settings
from threadkeep.storage.store import Store

PROMPT = "Be brief."


async def rated(store: Store, agent: Agent, user: UserId, asked: str, *, share_text: bool = False) -> None:
    conversation = await keep_turn(store, await keep_conversation(store, agent, user), asked, f"So: {asked}")
    (kept,) = await store.whole_conversations.turns(conversation.id, after=None, limit=1)
    message = ModelMessage("user", (TextBlock(asked),))
    line = line_of(message)
    receipt = make_receipt(
        components=(ComponentReceipt("systemPrompt", text_hash(PROMPT), len(PROMPT)),),
        segments=(text_hash(line),),
    )
    await keep_receipt(store, kept.turn, receipt, {text_hash(PROMPT): PROMPT, text_hash(line): line})
    await keep_feedback(store, conversation, Rating.DOWN, note=f"No: {asked}", share_text=share_text)


async def kept(settings: Settings) -> None:
    async with opened_store(settings) as store:
        own = await keep_agent(store, ALICE, name="Hers", visibility=Visibility.PUBLIC)
        bobs = await keep_agent(store, BOB, name="His", visibility=Visibility.PUBLIC)
        await rated(store, own, BOB, "secret")
        await rated(store, own, BOB, "shared", share_text=True)
        await rated(store, own, ALICE, "own")
        await rated(store, bobs, ALICE, "elsewhere")
        await rated(store, bobs, BOB, "not hers", share_text=True)


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def exported(settings: Settings, file: Path, agent: str | None = None) -> list[dict[str, Any]]:
    assert await export_feedback(settings, ALICE, file, agent) == 0
    return read(file)


async def test_lines_have_the_requests_of_own_and_shared_turns(here: Settings, tmp_path: Path):
    await kept(here)
    lines = await exported(here, tmp_path / "all.jsonl")
    assert {(it["agent"], it["note"], it.get("question"), "request" in it) for it in lines} == {
        ("Hers", "No: secret", None, False),
        ("Hers", "No: shared", "shared", True),
        ("Hers", "No: own", "own", True),
        ("His", "No: elsewhere", "elsewhere", True),
    }
    requests = {it["question"]: it["request"] for it in lines if "request" in it}
    assert requests["shared"]["system"] == PROMPT
    assert requests["shared"]["messages"] == [
        {"role": "user", "blocks": [{"type": "text", "text": "shared"}]}
    ]
    assert requests["elsewhere"]["system"] == ""  # another owner's prompt
    assert "secret" not in (tmp_path / "all.jsonl").read_text().replace("No: secret", "")
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600


async def test_one_agents_feedback(here: Settings, tmp_path: Path):
    await kept(here)
    assert len(await exported(here, tmp_path / "hers.jsonl", "hers")) == 3
    assert len(await exported(here, tmp_path / "his.jsonl", "His")) == 1
    with pytest.raises(AgentNotFound):
        await export_feedback(here, ALICE, tmp_path / "none.jsonl", "Nobody's")
    assert not (tmp_path / "none.jsonl").exists()
    with pytest.raises(StorageRefused):
        await export_feedback(here, ALICE, tmp_path / "hers.jsonl", None)
    with pytest.raises(UserNotFound):
        await export_feedback(here, UserId("nobody"), tmp_path / "nobody.jsonl", None)
