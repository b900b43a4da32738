"""What `turn` raises.

TurnError
├── AgentError                  yours: ends the turn with this sentence, which its user sees
├── OutcomeUnknown              a step was cut off and may have taken effect
├── StepFailed                  a step's exception, which can't be raised as its own class
├── StepResultInvalid           a step returned what can't be stored
├── StepResultTooLarge          a step returned more than 8 MiB
├── Denied                      the user refused a step or a call
├── ModelFailed                 no model replied
│   └── OutputInvalid           a model's reply isn't the output that was asked for
├── BudgetExceeded              a budget or a quota is used up
├── ToolFailed                  a tool of a server, or of the client, failed
├── AgentUnusable               another agent can't run in this turn: there is none, or it is too deep
├── StepLimit                   the turn has taken as many steps as it may
└── TurnMisused                 a mistake in the agent's code
    ├── AmbiguousStep           two steps at once that nothing tells apart
    ├── StepInsideStep          a step, or another claim, inside a step
    ├── NotInAStep              what only a step has, outside one
    ├── NotJson                 arguments or a state that can't be written as JSON
    ├── StateReadOnly           a change of `turn.state` inside a step
    └── TurnEnded               a `turn` or a step that is over

asyncio.CancelledError
└── TurnCancelled               the turn was stopped; in `finally`, every call of `turn` raises it
    └── TurnSuspended           the turn waits for its user; its function starts again from the top

AgentsNotLoaded                 the agents that were named can't be imported
"""

import asyncio


class TurnError(Exception):
    """Everything that `turn` raises, except when the turn ends."""

    code: str | None = None
    """The code of the turn's error, if it ends the turn."""

    @property
    def hint(self) -> str | None:
        """What the program's log says of it: nothing that comes from the turn's user, nor from a step."""
        return None


class AgentError(TurnError):
    """Ends the turn with a sentence for its user."""


class OutcomeUnknown(TurnError):
    """A step was cut off and may have taken effect; it was not repeated."""

    code = "OUTCOME_UNKNOWN"
    for_model = "The call was interrupted and may have taken effect. Check before you repeat it."
    """What a model reads of it that asked for the call."""


class StepFailed(TurnError):
    """A step raised what can't be rebuilt from its record as an exception of its own class."""

    def __init__(self, name: str, type: str, message: str) -> None:  # noqa: A002 - its public name
        super().__init__(name, type, message)
        self.name = name
        self.type = type
        self.message = message

    def __str__(self) -> str:
        return f"{self.name} failed with {self.type}: {self.message}"


class StepResultInvalid(TurnError):
    """A step returned what can't be stored."""

    def __init__(self, what: str, reason: str = "", advice: str = "") -> None:
        super().__init__(what, reason, advice)

    def __str__(self) -> str:
        return _explained(*self.args)

    @property
    def hint(self) -> str:
        """Without the reason, which may quote a value."""
        return _explained(self.args[0], "", self.args[2])


class StepResultTooLarge(TurnError):
    """A step returned too much."""

    @property
    def hint(self) -> str:
        """What it says: it names sizes."""
        return str(self)


class Denied(TurnError):
    """The user, or a rule of the agent, refused a step or a call."""

    code = "DENIED"

    @property
    def reason(self) -> str:
        """Why, if somebody said so."""
        return str(self)

    @property
    def for_model(self) -> str:
        """What a model reads of it that asked for the call."""
        return f"The user denied the call. {self}".strip()


class ModelFailed(TurnError):
    """No model replied."""

    code = "MODEL_FAILED"

    def __init__(self, message: str, turn_code: str | None = None, is_retryable: bool = False) -> None:
        super().__init__(message, turn_code, is_retryable)
        self.turn_code = turn_code
        """The code of the turn's error, for a model that was called without `turn.model`."""
        self.is_retryable = is_retryable
        """Whether another attempt may get a reply then."""

    def __str__(self) -> str:
        return self.args[0]


class OutputInvalid(ModelFailed):
    """A model's reply isn't the output that was asked for, also when it was asked again."""

    code = "OUTPUT_INVALID"


class BudgetExceeded(TurnError):
    """A budget or a quota is used up."""

    code = "BUDGET_EXCEEDED"


class ToolFailed(TurnError):
    """A tool of a server, or of the client, failed."""

    code = "TOOL_FAILED"


class AgentUnusable(TurnError):
    """Another agent can't run in this turn: none that its user may use has this name, or it would be one too
    many inside each other.
    """

    code = "AGENT_UNUSABLE"

    @property
    def hint(self) -> str:
        """What it says: it names agents as the code does."""
        return str(self)


class StepLimit(TurnError):
    """The turn has taken as many steps as it may."""

    code = "STEP_LIMIT"


class TurnMisused(TurnError):
    """A mistake in the agent's code."""

    @property
    def hint(self) -> str:
        """What it says: it names code."""
        return str(self)


class AmbiguousStep(TurnMisused):
    """Two steps at once that nothing tells apart."""


class StepInsideStep(TurnMisused):
    """A step, or another claim, inside a step."""


class NotInAStep(TurnMisused):
    """What only a step has, outside one."""


class NotJson(TurnMisused):
    """Arguments or a state that can't be written as JSON."""

    def __init__(self, what: str, reason: str = "", advice: str = "") -> None:
        super().__init__(what, reason, advice)

    def __str__(self) -> str:
        return _explained(*self.args)

    @property
    def hint(self) -> str:
        """Without the reason, which may quote a value."""
        return _explained(self.args[0], "", self.args[2])


class StateReadOnly(TurnMisused):
    """A change of `turn.state` inside a step, which would be lost when the function runs again."""


class TurnEnded(TurnMisused):
    """A `turn` or a step that is over."""


class TurnCancelled(asyncio.CancelledError):
    """The turn was stopped."""


class TurnSuspended(TurnCancelled):
    """The turn waits for its user; when they answer, its function starts again from the top."""


class AgentsNotLoaded(Exception):
    """The agents that were named can't be imported."""


def _explained(what: str, reason: str, advice: str) -> str:
    """What is wrong, why, and what to do, as sentences."""
    given = f"{what}: {reason}" if reason else what, advice
    return " ".join(it if it.endswith(".") else f"{it}." for it in given if it)
