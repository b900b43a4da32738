"""`output` of `turn.model` and `turn.run`, and functions that return an object."""

from dataclasses import dataclass
from typing import Any

import pytest

from threadkeep.agents import OutputInvalid, Turn, agent
from threadkeep.testing import Say, ScriptedModel, run_agent

OSLO = '{"name": "Oslo", "people": 7}'


@dataclass
class City:
    """What the model is asked for."""

    name: str
    people: int


@agent()
async def describing(turn: Turn) -> Any:
    """Asks a model for a city."""
    reply = await turn.run(output=City) if turn.text == "run" else await turn.model(turn.text, output=City)
    assert reply.output == City("Oslo", 7)
    assert reply.usage.input_tokens > 0
    return reply


@pytest.mark.parametrize("how", ["run", "model"])
async def test_a_reply_is_repaired_before_it_is_shown_and_its_message_has_the_value(how: str):
    with ScriptedModel([Say("Os"), Say("lo.")], [Say(f"```json\n{OSLO}\n```")]) as model:
        run = await run_agent(describing, how, model=model)
    assert (run.status, run.output) == ("COMPLETED", {"name": "Oslo", "people": 7})
    texts = [(it["text"], it.get("superseded", False)) for it in run.parts if it["type"] == "text"]
    assert texts == [(f"```json\n{OSLO}\n```", False)]
    assert "isn't JSON" in str(model.requests[1].body["messages"][-1]["content"])


@agent()
async def catching(turn: Turn) -> Any:
    """Asks for a city in vain."""
    schema = {"type": "object", "required": ["people"], "properties": {"people": {"type": "integer"}}}
    try:
        await turn.model("?", output=schema)
    except OutputInvalid as exc:
        if turn.text == "raise":
            raise
        return {"problem": str(exc)}


async def test_a_reply_that_never_fits_raises_what_does_not_fit():
    for text in ("catch", "raise"):
        with ScriptedModel([Say("{}")], [Say('{"people": "many"}')]) as model:
            run = await run_agent(catching, text, model=model)
        assert len(model.requests) == 2
        if text == "catch":
            assert "people" in run.output["problem"] and run.status == "COMPLETED"
        else:
            assert run.error is not None and run.error.code == "OUTPUT_INVALID"
            assert "people" in run.error.message
