"""A turn's requests as questions that a client asks, and what the answers decide."""

from typing import Any

import pytest
from mcp_types import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    FormElicitationCapability,
    UrlElicitationCapability,
)

from threadkeep.domain.approval import Approval, ApprovalAction, ApprovalKind, ApprovalScope
from threadkeep.domain.ids import ConversationId, TurnId
from threadkeep.protocols.mcp.asking import MOST_ARGUMENTS_CHARACTERS, decision_of, question_for

FORMS = ClientCapabilities(elicitation=ElicitationCapability(form=FormElicitationCapability()))
URLS = ClientCapabilities(elicitation=ElicitationCapability(url=UrlElicitationCapability()))
PLAIN = ClientCapabilities(elicitation=ElicitationCapability())
FORM = {"type": "object", "properties": {"decision": {"type": "string"}}}


def request(kind: ApprovalKind, **more: Any) -> Approval:
    return Approval(
        request_id="r",
        turn_id=TurnId("t"),
        conversation_id=ConversationId("c"),
        kind=kind,
        message="May I?",
        created_at=1,
        expires_at=2,
        **more,
    )


def form_of(approval: Approval, client: ClientCapabilities = FORMS) -> ElicitRequestFormParams:
    question = question_for(approval, client)
    assert question
    assert isinstance(question.params, ElicitRequestFormParams)
    return question.params


def accepted(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content or None)


def test_tool_is_shown_with_what_it_is_called_with():
    form = form_of(request(ApprovalKind.TOOL, arguments={"text": "茶"}))
    assert form.message == 'May I?\n{\n  "text": "茶"\n}'
    assert form_of(request(ApprovalKind.TOOL)).message == "May I?"


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": f"ls {'.' * MOST_ARGUMENTS_CHARACTERS}; rm -r ."},
        {"command": "ls" + "\n" * MOST_ARGUMENTS_CHARACTERS + "rm -r ."},
        {"command": "ls" + "\u200b" * 400 + "rm -r ."},  # longer once it is visible
        {f"option{it}": it for it in range(200)},
        {"nested": [["x" * 500]] * 5},
    ],
)
def test_what_is_not_shown_whole_can_only_be_denied(arguments: dict[str, Any]):
    approval = request(ApprovalKind.TOOL, arguments=arguments)
    form = form_of(approval)
    assert form.requested_schema["properties"]["decision"]["enum"] == ["Deny"]
    assert "on Threadkeep's page" in form.message
    assert len(form.message) < MOST_ARGUMENTS_CHARACTERS + 400
    for choice in ("Allow once", "Allow in this conversation"):  # whatever the client shows
        assert decision_of(approval, accepted(decision=choice), 5) is None
    denied = decision_of(approval, accepted(decision="Deny"), 5)
    assert denied
    assert denied.action is ApprovalAction.DENY


def test_nothing_hides_in_what_is_shown():
    form = form_of(request(ApprovalKind.TOOL, arguments={"path": "a\u202etxt.exe", "tag": "ok\U000e0041"}))
    assert '"a\\u202etxt.exe"' in form.message
    assert '"ok\\udb40\\udc41"' in form.message


@pytest.mark.parametrize(
    ("choice", "action", "scope"),
    [
        ("Allow once", ApprovalAction.ALLOW, ApprovalScope.ONCE),
        ("Allow in this conversation", ApprovalAction.ALLOW, ApprovalScope.CONVERSATION),
        ("Deny", ApprovalAction.DENY, ApprovalScope.ONCE),
    ],
)
def test_choices_of_a_tool(choice: str, action: ApprovalAction, scope: ApprovalScope):
    approval = request(ApprovalKind.TOOL)
    assert choice in form_of(approval).requested_schema["properties"]["decision"]["enum"]
    decision = decision_of(approval, accepted(decision=choice), 5)
    assert decision
    assert (decision.action, decision.scope, decision.at) == (action, scope, 5)


def test_no_choice_decides_nothing():
    for answer in (accepted(), accepted(decision="yes"), ElicitResult(action="cancel")):
        assert decision_of(request(ApprovalKind.TOOL), answer, 5) is None


def test_question_of_the_model():
    choices = {"type": "string", "enum": ["red", "blue"]}
    form = form_of(request(ApprovalKind.QUESTION, schema=choices))
    assert form.requested_schema["properties"]["answer"]["enum"] == ["red", "blue"]
    open_ = request(ApprovalKind.QUESTION)
    assert form_of(open_).requested_schema["properties"]["answer"]["type"] == "string"
    decision = decision_of(open_, accepted(answer="blue"), 5)
    assert decision
    assert (decision.action, decision.content) == (ApprovalAction.ANSWER, "blue")


def test_form_of_a_server_keeps_its_own_fields():
    approval = request(ApprovalKind.ELICITATION, schema=FORM)
    assert form_of(approval).requested_schema == FORM
    decision = decision_of(approval, accepted(decision="Deny"), 5)
    assert decision
    assert (decision.action, decision.content) == (ApprovalAction.ANSWER, {"decision": "Deny"})


def test_url_is_for_clients_that_open_urls():
    approval = request(ApprovalKind.ELICITATION, url="https://example.org/pay")
    assert question_for(approval, FORMS) is None
    question = question_for(approval, URLS)
    assert question
    assert isinstance(question.params, ElicitRequestURLParams)
    decision = decision_of(approval, accepted(), 5)
    assert decision
    assert (decision.action, decision.content) == (ApprovalAction.ANSWER, None)


def test_clients_that_cannot_ask_are_not_told_to():
    tool = request(ApprovalKind.TOOL)
    assert question_for(tool, None) is None
    assert question_for(tool, ClientCapabilities()) is None
    assert question_for(tool, URLS) is None
    assert question_for(tool, PLAIN)
    assert question_for(request(ApprovalKind.CLIENT_TOOL), FORMS) is None
    assert decision_of(tool, ElicitResult(action="decline"), 5)
