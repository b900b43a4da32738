"""A turn's requests to its user as questions that the client asks (2026-07-28), and the answers.

The client asks its user and repeats the call with the answers. Nothing of ours waits for it meanwhile: the
turn waits as for any other client, until somebody decides or the request expires.
"""

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
)

from threadkeep.domain.approval import Approval, ApprovalAction, ApprovalKind, ApprovalScope, Decision
from threadkeep.domain.text import visible

MOST_ARGUMENTS_CHARACTERS = 2_000
"""Clients show a question in a small dialog. What is longer can only be denied there."""

_DENY = "Deny"
_CHOICES = ["Allow once", "Allow in this conversation", _DENY]


def question_for(approval: Approval, client: ClientCapabilities | None) -> ElicitRequest | None:
    """A request as a question, if this client can ask it."""
    can = client.elicitation if client else None
    if can is None:
        return None
    if approval.url is not None:
        if can.url is None:
            return None
        return ElicitRequest(params=ElicitRequestURLParams(message=approval.message, url=approval.url))
    schema = _form(approval)
    if schema is None or not _asks_forms(can):
        return None
    params = ElicitRequestFormParams(message=_message(approval), requested_schema=schema)
    return ElicitRequest(params=params)


def _asks_forms(can: ElicitationCapability) -> bool:
    return can.form is not None or can.url is None  # an empty capability means forms


def _form(approval: Approval) -> dict[str, Any] | None:
    match approval.kind:
        case ApprovalKind.TOOL:
            choices = _CHOICES if _is_shown_whole(approval) else [_DENY]
            decision = {"type": "string", "title": "Decision", "enum": choices}
            return {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}
        case ApprovalKind.QUESTION:
            answer = {"title": "Answer", **(approval.schema or {"type": "string"})}
            return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        case ApprovalKind.ELICITATION:
            return dict(approval.schema) if approval.schema is not None else None
        case ApprovalKind.CLIENT_TOOL:
            return None  # another client's tool


def _message(approval: Approval) -> str:
    """What the user reads: for a tool, also what it would be called with."""
    if approval.kind is not ApprovalKind.TOOL:
        return approval.message
    message, arguments = visible(approval.message), _arguments(approval)
    if _is_shown_whole(approval):
        return f"{message}\n{arguments}".rstrip("\n")
    return (
        f"{message}\n{arguments[:MOST_ARGUMENTS_CHARACTERS]}…\n\nThis is not all: the arguments have "
        f"{len(arguments):,} characters. To read them and allow the call, open the conversation on "
        "Threadkeep's page or with `threadkeep chat`. Here you can only deny it."
    )


def _arguments(approval: Approval) -> str:
    """What the tool would be called with, as JSON in which nothing hides."""
    if not approval.arguments:
        return ""
    return visible(json.dumps(approval.arguments, ensure_ascii=False, indent=2))


def _is_shown_whole(approval: Approval) -> bool:
    """Whether the question shows all of the arguments: nobody allows what they couldn't see."""
    return len(_arguments(approval)) <= MOST_ARGUMENTS_CHARACTERS


def decision_of(approval: Approval, answer: ElicitResult, at: int) -> Decision | None:
    """What the user's answer decides; None if they have dismissed the question."""
    content: Mapping[str, Any] = answer.content or {}
    if answer.action == "cancel":
        return None
    if answer.action == "decline":
        return Decision(action=ApprovalAction.DENY, at=at)
    match approval.kind:
        case ApprovalKind.TOOL:
            choice = content.get("decision")
            return _tool_decision(choice, at) if choice == _DENY or _is_shown_whole(approval) else None
        case ApprovalKind.QUESTION:
            return Decision(action=ApprovalAction.ANSWER, at=at, content=content.get("answer"))
        case ApprovalKind.ELICITATION | ApprovalKind.CLIENT_TOOL:
            given = None if approval.url is not None else dict(content)
            return Decision(action=ApprovalAction.ANSWER, at=at, content=given)


def _tool_decision(choice: object, at: int) -> Decision | None:
    match choice:
        case "Allow once":
            return Decision(action=ApprovalAction.ALLOW, at=at)
        case "Allow in this conversation":
            return Decision(action=ApprovalAction.ALLOW, at=at, scope=ApprovalScope.CONVERSATION)
        case choice if choice == _DENY:
            return Decision(action=ApprovalAction.DENY, at=at)
        case _:
            return None
