"""Turns of agents in code, as the server equips them."""

import pytest

from threadkeep.agents import Turn, agent
from threadkeep.services.replies import code_replies
from threadkeep.testing import run_agent


async def test_an_agent_takes_as_many_steps_as_it_declares(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(code_replies, "MOST_STEPS", 2)

    async def counts(turn: Turn) -> str:
        return str(sum([await turn.step(abs, it, effect="read") for it in range(4)]))

    run = await run_agent(agent(max_steps=5)(counts), "Count")
    assert (run.status, run.text) == ("COMPLETED", "6")
    run = await run_agent(agent(max_steps=3)(counts), "Count")
    assert run.error is not None
    assert run.error.code == "STEP_LIMIT"
