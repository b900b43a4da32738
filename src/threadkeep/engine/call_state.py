"""One tool call of a running turn: its progress, and what happens next with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.engine.ending import NO_DECISION, NO_RESULT
from threadkeep.engine.journal import Dispatch, InputAwaited
from threadkeep.engine.model_call import ModelReads
from threadkeep.engine.permissions import ToolPermissions
from threadkeep.ports.gateway import ToolUse
from threadkeep.ports.tools import GivenInput, Returned, Tool

UNKNOWN = "The call was interrupted and may have taken effect. Check before you repeat it."
RESTARTED = "This server restarted and lost its state."
DENIED_BY_RULE = "The agent's owner doesn't allow this tool."
DENIED_BY_USER = "The user denied this call."
DENIED_BY_CLIENT = "The client didn't run this tool."


@dataclass(frozen=True, slots=True)
class CallState:
    """The progress of one tool call."""

    dispatch: Dispatch | None = None
    """It was passed to its tool."""
    asked: frozenset[str] = frozenset()
    """The requests about it."""
    undecided: frozenset[str] = frozenset()
    """The requests without a decision."""
    decision: Decision | None = None
    """The user's decision on the call itself."""
    client_decision: Decision | None = None
    """How the client that runs it ended it: with a result, or without."""
    awaited: InputAwaited | None = None
    """Set if it returned because its server needs input from the user."""
    inputs: Mapping[str, Decision] = field(default_factory=dict[str, Decision])
    """That input, by the ids of the requests."""
    rounds: int = 0
    """How often it has returned since its server received it without input."""
    reads: ModelReads | None = None
    """What the model reads of it, if it has ended."""

    @property
    def open_requests(self) -> frozenset[str]:
        """The undecided requests to its user, while the call isn't running."""
        if self.dispatch is not None or self.reads is not None:
            return frozenset()
        if self.awaited is not None:
            return self.asked & {it.request_id for it in self.awaited.requests} - self.inputs.keys()
        return self.undecided

    @property
    def may_have_taken_effect(self) -> bool:
        """Whether its tool received it, nobody knows how it ended, and it must not run twice."""
        return self.dispatch is not None and not self.dispatch.effect.is_repeatable

    @property
    def given(self) -> GivenInput | None:
        """The input that its server needs, once all of it is there."""
        if self.awaited is None or any(it.request_id not in self.inputs for it in self.awaited.requests):
            return None
        decisions = {it.key: self.inputs[it.request_id] for it in self.awaited.requests}
        return GivenInput(self.awaited.state, dict[str, Decision | None](decisions))

    def dispatched(self) -> "CallState":
        """The state of a call that its tool receives; one without input begins its rounds again."""
        return self if self.given is not None else replace(self, rounds=0)

    def awaiting(self, awaited: InputAwaited) -> "CallState":
        """The state of a call that returned because its server needs input."""
        return replace(self, dispatch=None, awaited=awaited, inputs={}, rounds=self.rounds + 1)

    def decided(self, request_id: str, decision: Decision) -> "CallState":
        """The state after a decision: input that its server awaits, or what the user decided on the call."""
        if self.awaited is not None:
            return replace(self, inputs={**self.inputs, request_id: decision})
        return replace(self, decision=decision, undecided=frozenset())

    def ended_by_client(self, decision: Decision) -> "CallState":
        """The state after the client has run the call, or hasn't."""
        return replace(self, client_decision=decision, undecided=frozenset())


@dataclass(slots=True)
class Call:
    """A call of the running turn."""

    use: ToolUse
    tool: Tool | None
    """None if there is no tool of this name."""
    request_id: str
    """The id of the request to the user about the call itself: for permission, or the model's question."""
    client_request_id: str
    """The id of the request to the client to run it, if that is who runs it."""
    state: CallState
    held_open: int = 0
    """How often its server has asked the user while it held the call open."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The user's arguments, or the model's."""
        decision = self.state.decision
        return self.use.arguments if decision is None or decision.arguments is None else decision.arguments

    def preface(self, *, is_restarted: bool = False) -> str:
        """What the model reads before a result: that its server lost its state, or that the user changed the
        call.
        """
        preface = f"{RESTARTED}\n" if is_restarted else ""
        if (decision := self.state.decision) is not None and decision.arguments is not None:
            arguments = msgspec.json.encode(decision.arguments).decode()
            preface += f"The user changed the arguments to {arguments}.\n"
        return preface


@dataclass(frozen=True, slots=True)
class AskUser:
    """A call that the user must decide on, or give input for, before it continues."""


@dataclass(frozen=True, slots=True)
class AskClient:
    """A call that the client must run."""


NextStep = Returned | Dispatch | AskUser | AskClient


def next_step(call: Call, permissions: ToolPermissions, problem: str | None) -> NextStep:
    """What happens next with a call: it ends like this, its tool or the client receives it, or the user is
    asked.

    `problem` is why it can't be made at all.
    """
    use, tool, state = call.use, call.tool, call.state
    if problem:
        return Returned("error", error=problem)
    assert tool is not None
    if state.dispatch is not None:  # it was interrupted, and may run twice
        return Dispatch(state.dispatch.id, state.dispatch.effect, state.dispatch.attempt + 1)
    if state.awaited is not None:
        return Dispatch(use.id, tool.effect) if state.given else AskUser()
    if permissions.is_denied(tool):
        return Returned("denied", error=DENIED_BY_RULE)
    if state.decision is not None:
        return _settled_by(state.decision) or _run(call, tool)
    # A request that was made stays valid, even if a rule would no longer require it.
    is_with_client = call.client_request_id in state.asked or state.client_decision is not None
    must_ask = call.request_id in state.asked or permissions.must_ask(tool, use.arguments)
    return AskUser() if must_ask and not is_with_client else _run(call, tool)


def _run(call: Call, tool: Tool) -> NextStep:
    """What happens next with a call that may run."""
    if not tool.is_run_by_client:
        return Dispatch(call.use.id, tool.effect)
    decision = call.state.client_decision
    return AskClient() if decision is None else _returned_by_client(decision)


def _returned_by_client(decision: Decision) -> Returned:
    match decision.action:
        case ApprovalAction.RESULT if decision.error is not None:
            return Returned("error", error=decision.error)
        case ApprovalAction.RESULT:
            return Returned("ok", result=decision.content)
        case ApprovalAction.EXPIRE:
            return Returned("denied", error=NO_RESULT)
        case _:
            return Returned("denied", error=DENIED_BY_CLIENT)


def _settled_by(decision: Decision) -> Returned | None:
    """How a decision ends a call; None if the call is to run."""
    match decision.action:
        case ApprovalAction.DENY:
            return Returned("denied", error=decision.error or DENIED_BY_USER)
        case ApprovalAction.EXPIRE:
            return Returned("denied", error=NO_DECISION)
        case ApprovalAction.ANSWER:
            return Returned("ok", result=decision.content)
        case ApprovalAction.ALLOW | ApprovalAction.EDIT | ApprovalAction.RESULT:
            return None
