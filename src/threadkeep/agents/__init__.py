"""Agents in code: a Python function becomes an agent, and its turns survive crashes, pauses and deploys."""

from threadkeep.agents.agent import Agent, agent
from threadkeep.agents.blocking import BlockingTurn, blocking
from threadkeep.agents.errors import (
    AgentError,
    AgentsNotLoaded,
    AmbiguousStep,
    BudgetExceeded,
    Denied,
    ModelFailed,
    NotInAStep,
    NotJson,
    OutcomeUnknown,
    StateReadOnly,
    StepFailed,
    StepInsideStep,
    StepLimit,
    StepResultInvalid,
    StepResultTooLarge,
    ToolFailed,
    TurnCancelled,
    TurnEnded,
    TurnError,
    TurnMisused,
    TurnSuspended,
)
from threadkeep.agents.loading import load, load_all
from threadkeep.agents.local import LocalPrograms
from threadkeep.agents.replies import Reply, Result, Thought, Usage
from threadkeep.agents.tool import Tool, tool
from threadkeep.agents.turn import Turn, current_turn, in_step, in_turn, step_key
from threadkeep.wire.programs import CallReturned, HitItem, ModelMessageItem

__all__ = [
    "Agent",
    "AgentError",
    "AgentsNotLoaded",
    "AmbiguousStep",
    "BlockingTurn",
    "BudgetExceeded",
    "CallReturned",
    "Denied",
    "HitItem",
    "LocalPrograms",
    "ModelFailed",
    "ModelMessageItem",
    "NotInAStep",
    "NotJson",
    "OutcomeUnknown",
    "Reply",
    "Result",
    "StateReadOnly",
    "StepFailed",
    "StepInsideStep",
    "StepLimit",
    "StepResultInvalid",
    "StepResultTooLarge",
    "Thought",
    "Tool",
    "ToolFailed",
    "Turn",
    "TurnCancelled",
    "TurnEnded",
    "TurnError",
    "TurnMisused",
    "TurnSuspended",
    "Usage",
    "agent",
    "blocking",
    "current_turn",
    "in_step",
    "in_turn",
    "load",
    "load_all",
    "step_key",
    "tool",
]
