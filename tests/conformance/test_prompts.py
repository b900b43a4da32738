"""Seed 001, prompt components: edited while it runs, and never too long."""

from pathlib import Path

import pytest

from tests.talking import Talk
from threadkeep.testing import ScriptedModel


async def system_prompts(talk: Talk, model: ScriptedModel, conversation: str) -> str:
    """What the model is told at the beginning of a turn."""
    await talk.ask(conversation)
    prompt, role, rest = model.requests[-1].body["messages"][0]["content"].partition("\n\nYour role is ")
    assert role
    assert "promptx_action" in rest
    return prompt


async def workspace(talk: Talk, conversation: str, tmp_path: Path) -> Path:
    agent_id = (await talk.client.get(f"/api/conversations/{conversation}")).json()["agentId"]
    folder = tmp_path / "data" / "agents" / agent_id
    folder.mkdir(parents=True)
    return folder


@pytest.mark.requirement("001-R4-S1")
async def test_changed_component_is_used_in_the_next_turn(talk: Talk, model: ScriptedModel, tmp_path: Path):
    conversation = await talk.titled_conversation(systemPrompt="Be brief.")
    folder = await workspace(talk, conversation, tmp_path)
    (folder / "RULES.md").write_text("Answer in French.")
    (folder / "IDENTITY.md").write_text("You are Ada.")
    told = await system_prompts(talk, model, conversation)
    assert told == "You are Ada.\n\nAnswer in French.\n\nBe brief."
    (folder / "RULES.md").write_text("Answer in German.")
    told = await system_prompts(talk, model, conversation)
    assert told == "You are Ada.\n\nAnswer in German.\n\nBe brief."


@pytest.mark.requirement("001-R4-S2")
async def test_component_that_is_too_long_is_cut_with_a_mark(
    talk: Talk, model: ScriptedModel, tmp_path: Path
):
    conversation = await talk.titled_conversation(systemPrompt="Be brief.")
    folder = await workspace(talk, conversation, tmp_path)
    for name in ("IDENTITY", "ROLE", "RULES", "TOOLS", "USER", "MEMORY"):
        (folder / f"{name}.md").write_text(f"{name} begins {'x' * 1_000_000} {name} ends")
    told = await system_prompts(talk, model, conversation)
    assert len(model.requests[-1].body["messages"][0]["content"]) <= 100_000
    for name in ("IDENTITY", "ROLE", "RULES", "TOOLS", "USER", "MEMORY"):
        assert f"{name} begins " in told
        assert f"characters of {name}.md left out …]" in told
        assert f" {name} ends" in told
    assert told.endswith("Be brief.")
