"""The SDK's public names, and its errors as one tree."""

import asyncio
from pathlib import Path

import threadkeep.agents
from threadkeep.agents import errors


def test_public_names_are_the_promised_ones():
    assert threadkeep.agents.__all__ == [
        "Agent", "AgentError", "AgentUnusable", "AgentsNotLoaded", "AmbiguousStep", "BlockingTurn",
        "BudgetExceeded", "CallReturned", "Denied", "HitItem", "LocalPrograms", "ModelFailed",
        "ModelMessageItem", "NotInAStep",
        "NotJson", "OutcomeUnknown", "OutputInvalid", "Reply", "Result", "StateReadOnly", "StepFailed",
        "StepInsideStep", "StepLimit", "StepResultInvalid", "StepResultTooLarge", "Thought", "Tool",
        "ToolFailed", "Turn", "TurnCancelled", "TurnEnded", "TurnError", "TurnMisused", "TurnSuspended",
        "Usage", "agent", "blocking", "current_turn", "in_step", "in_turn", "load", "load_all",
        "step_key", "tool",
    ]  # fmt: skip


def test_the_docstring_draws_every_error_and_every_one_is_public():
    drawn = [
        line.strip("│├└─ ").split()[0] for line in (errors.__doc__ or "").splitlines()[2:] if line.strip()
    ]
    defined = [name for name, it in vars(errors).items() if isinstance(it, type)]
    assert sorted(drawn) == sorted([*defined, "asyncio.CancelledError"])
    assert set(defined) <= set(threadkeep.agents.__all__)


def test_the_documentation_draws_the_same_tree():
    _, tree = (errors.__doc__ or "").split("\n\n", 1)
    page = Path(__file__).parents[2] / "docs" / "agents-in-code.md"
    assert tree.strip() in page.read_text()


def test_errors_can_be_caught_by_their_kind():
    for name in ("AmbiguousStep", "StepInsideStep", "NotInAStep", "NotJson", "StateReadOnly", "TurnEnded"):
        assert issubclass(getattr(errors, name), errors.TurnMisused)
    assert issubclass(errors.TurnSuspended, errors.TurnCancelled)
    assert issubclass(errors.TurnCancelled, asyncio.CancelledError)
    assert not issubclass(errors.TurnCancelled, Exception)
