"""Servers that ask the user: who is asked, what is asked, and how a call goes on with the answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import mcp_types as mcp
import pytest
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import UrlElicitationRequiredError
from pydantic import BaseModel

from tests.making import NOW
from tests.mcp.running import ALICE, BOB, LIMITS, Pooled, chaos, pooled
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.mcp import McpServer, RemoteServer, ServerScope
from threadkeep.mcp.sessions.elicitation import Question, elicit_result, question_of
from threadkeep.mcp.sessions.open_call import MOST_QUESTIONS
from threadkeep.ports.tools import Asked, GivenInput, InputRequest, InputRequired, Returned, Step
from threadkeep.testing import ToolServer

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"type": "string", "enum": ["S", "M"], "title": "Size"}},
    "required": ["size"],
}
ASK_FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "Which size?", "requestedSchema": FORM},
}
ADDRESS = "https://shop.example/pay?order=7"
ANSWERED = Decision(action=ApprovalAction.ANSWER, at=NOW, content={"size": "M"})
ALLOWED = Decision(action=ApprovalAction.ALLOW, at=NOW)
DENIED = Decision(action=ApprovalAction.DENY, at=NOW)
EXPIRED = Decision(action=ApprovalAction.EXPIRE, at=NOW)

Reply = Callable[[Asked], Decision | None]


class Size(BaseModel):
    """A form with one field."""

    size: str


async def order(context: Context) -> str:
    """Orders something; asks for the size."""
    answered = await context.elicit("Which size?", Size)
    return f"{answered.action} {answered.data.size}" if answered.action == "accept" else answered.action


async def pay(context: Context) -> str:
    """Has something paid."""
    return (await context.elicit_url("Pay here.", ADDRESS, "an-id")).action


async def nag(context: Context) -> str:
    """Asks and asks."""
    answers = [await context.elicit_url("Pay.", ADDRESS, str(number)) for number in range(MOST_QUESTIONS + 5)]
    return str(sum(answer.action == "accept" for answer in answers))


async def shout(context: Context) -> str:
    """Asks, but does not say in which call."""
    return (await context.session.elicit_form("Which size?", FORM)).action


async def later(context: Context) -> str | mcp.InputRequiredResult:
    """Asks in the way of the newer version: its call ends, and it is called again."""
    if context.input_responses is None:
        form = mcp.ElicitRequestFormParams(message="Which size?", requested_schema=FORM)
        good = mcp.ElicitRequestURLParams(message="Pay here.", url=ADDRESS)
        bad = mcp.ElicitRequestURLParams(message="Run this.", url="file:///x")
        asked = {"size": form, "pay": good, "bad": bad}
        requests: dict[str, Any] = {key: mcp.ElicitRequest(params=it) for key, it in asked.items()}
        return mcp.InputRequiredResult(input_requests=requests, request_state="so far")
    given = {key: it.model_dump(exclude_none=True) for key, it in context.input_responses.items()}
    return json.dumps({"state": context.request_state, "given": given})


async def again(context: Context) -> str | mcp.InputRequiredResult:
    """Wants to be called three times."""
    rounds = int(context.request_state or 0)
    return "done" if rounds == 2 else mcp.InputRequiredResult(request_state=str(rounds + 1))


async def think() -> str | mcp.InputRequiredResult:
    """Wants a model of ours."""
    asked = mcp.CreateMessageRequestParams(messages=[], max_tokens=1)
    return mcp.InputRequiredResult(input_requests={"model": mcp.CreateMessageRequest(params=asked)})


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Pooled]:
    """A pool that must leave nothing behind."""
    async with pooled(tmp_path, LIMITS, allow_private=True) as here:
        yield here


async def converse(
    here: Pooled,
    server: McpServer,
    tool: str,
    reply: Reply,
    given: GivenInput | None = None,
    **arguments: Any,
) -> list[Step]:
    """All steps of a call whose user replies like this."""
    steps: list[Step] = []
    async with aclosing(here.pool.call(here.key(server), server, tool, arguments, given=given)) as calling:
        async for step in calling:
            steps.append(step)
            if isinstance(step, Asked):
                step.decide(reply(step))
    return steps


def says(answer: Decision | None) -> Reply:
    return lambda _: answer


def not_asked(asked: Asked) -> Decision | None:
    raise AssertionError(f"nobody is to be asked {asked.message!r}")


# While a call is held open


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ANSWERED, {"action": "accept", "content": {"size": "M"}}),
        (DENIED, {"action": "decline"}),
        (EXPIRED, {"action": "cancel"}),
        (None, {"action": "cancel"}),
    ],
)
async def test_program_of_one_user_asks_them(here: Pooled, answer: Decision | None, told: Mapping[str, Any]):
    asked, returned = await converse(here, chaos(scope=ServerScope.USER), "ask", says(answer), **ASK_FORM)
    assert isinstance(asked, Asked) and isinstance(returned, Returned)
    assert (asked.message, asked.schema, asked.url) == ("Which size?", FORM, None)
    assert json.loads(returned.result) == told


async def test_program_of_one_conversation_asks_its_user(here: Pooled):
    server = chaos(scope=ServerScope.CONVERSATION)
    asked, returned = await converse(here, server, "ask", says(ANSWERED), **ASK_FORM)
    assert isinstance(asked, Asked) and isinstance(returned, Returned)
    assert json.loads(returned.result)["action"] == "accept"


async def test_program_that_several_users_share_cannot_ask(here: Pooled):
    (returned,) = await converse(here, chaos(), "ask", not_asked, **ASK_FORM)
    assert isinstance(returned, Returned)
    assert json.loads(returned.result) == {"action": "decline"}


async def test_nobody_is_asked_while_two_calls_are_under_way(here: Pooled):
    server = chaos(scope=ServerScope.USER)
    waiting = here.pool.call(here.key(server), server, "stall", {})
    await anext(waiting)
    (returned,) = await converse(here, server, "ask", not_asked, **ASK_FORM)
    assert isinstance(returned, Returned)
    assert json.loads(returned.result) == {"action": "decline"}
    await waiting.aclose()


async def test_remote_server_asks_on_the_stream_of_the_call_whose_user_it_means(here: Pooled):
    sizes = {ALICE: "S", BOB: "M"}
    both_are_open = asyncio.Barrier(2)

    async def ordered(server: McpServer, size: str) -> Any:
        async with aclosing(here.pool.call(here.key(server), server, "order", {})) as calling:
            async for step in calling:
                if isinstance(step, Asked):
                    await both_are_open.wait()
                    step.decide(Decision(action=ApprovalAction.ANSWER, at=NOW, content={"size": size}))
                elif isinstance(step, Returned):
                    return step.result
        return None

    with ToolServer(order) as running:
        server = RemoteServer(running.url)  # of all users
        results = await asyncio.gather(*(ordered(server, size) for size in sizes.values()))
    assert results == [{"result": "accept S"}, {"result": "accept M"}]


@pytest.mark.parametrize(
    ("scope", "asked", "told"), [(ServerScope.AGENT, 0, "decline"), (ServerScope.USER, 1, "accept")]
)
async def test_remote_server_that_does_not_say_in_which_call_it_asks_needs_to_have_one_user(
    here: Pooled, scope: ServerScope, asked: int, told: str
):
    with ToolServer(shout) as running:
        server = RemoteServer(running.url, scope=scope)
        *questions, returned = await converse(here, server, "shout", says(ANSWERED))
    assert isinstance(returned, Returned)
    assert (len(questions), returned.result) == (asked, {"result": told})


@pytest.mark.parametrize(("answer", "told"), [(ALLOWED, "accept"), (DENIED, "decline"), (None, "cancel")])
async def test_user_is_sent_to_an_address(here: Pooled, answer: Decision | None, told: str):
    with ToolServer(pay) as running:
        asked, returned = await converse(here, RemoteServer(running.url), "pay", says(answer))
    assert isinstance(asked, Asked) and isinstance(returned, Returned)
    assert (asked.message, asked.schema, asked.url) == ("Pay here.", None, ADDRESS)
    assert returned.result == {"result": told}


async def test_first_decision_counts(here: Pooled):
    server = chaos(scope=ServerScope.USER)
    calling = here.pool.call(here.key(server), server, "ask", ASK_FORM)
    asked = await anext(calling)
    assert isinstance(asked, Asked)
    asked.decide(DENIED)
    asked.decide(ANSWERED)
    returned = await anext(calling)
    assert isinstance(returned, Returned)
    assert json.loads(returned.result) == {"action": "decline"}
    await calling.aclose()


async def test_question_of_a_call_that_is_given_up_is_cancelled(here: Pooled):
    server = chaos(scope=ServerScope.USER)
    calling = here.pool.call(here.key(server), server, "ask", ASK_FORM)
    assert isinstance(await anext(calling), Asked)
    await calling.aclose()
    assert json.loads((await here.call(server, "asked")).result) == [{"action": "cancel"}]


async def test_secrets_of_a_server_are_not_in_its_question(here: Pooled):
    server = chaos(env={"API_KEY": "top-secret"}, scope=ServerScope.USER)
    params = {"message": "Is it top-secret?", "requestedSchema": FORM}
    asked, _ = await converse(here, server, "ask", says(None), method="elicitation/create", params=params)
    assert isinstance(asked, Asked)
    assert "top-secret" not in asked.message


@pytest.mark.parametrize(
    ("method", "params"),
    [("sampling/createMessage", {"messages": [], "maxTokens": 1}), ("roots/list", {})],
)
async def test_server_gets_neither_a_model_nor_our_folders(here: Pooled, method: str, params: Any):
    server = chaos(scope=ServerScope.USER)
    (returned,) = await converse(here, server, "ask", not_asked, method=method, params=params)
    assert isinstance(returned, Returned)
    assert "code" in json.loads(returned.result)


async def test_number_of_questions_in_a_call_is_bounded(here: Pooled):
    with ToolServer(nag) as running:
        *asked, returned = await converse(here, RemoteServer(running.url), "nag", says(ALLOWED))
    assert isinstance(returned, Returned)
    assert len(asked) == MOST_QUESTIONS
    assert returned.result == {"result": str(MOST_QUESTIONS)}


# When a call ends and goes on with the answers


async def test_call_goes_on_with_the_answers_anywhere(here: Pooled, tmp_path: Path):
    with ToolServer(later, newest_only=True) as running:
        server = RemoteServer(running.url)
        (needed,) = await converse(here, server, "later", not_asked)
        assert isinstance(needed, InputRequired)
        assert needed.requests == (
            InputRequest("size", "Which size?", FORM),
            InputRequest("pay", "Pay here.", url=ADDRESS),
        )
        given = GivenInput(needed.state, {"size": ANSWERED, "pay": None})
        async with pooled(tmp_path / "elsewhere", LIMITS, allow_private=True) as there:
            (returned,) = await converse(there, server, "later", not_asked, given)
    assert isinstance(returned, Returned)
    assert json.loads(returned.result["result"]) == {
        "state": "so far",
        "given": {
            "size": {"action": "accept", "content": {"size": "M"}},
            "pay": {"action": "cancel"},
            "bad": {"action": "decline"},
        },
    }


async def test_call_of_a_program_goes_on_after_it_was_restarted(here: Pooled, tmp_path: Path):
    server = chaos("newest")  # of all users: whose call it is, is certain
    question: dict[str, Any] = {"mode": "form", "message": "Which size?", "requestedSchema": FORM}
    (needed,) = await converse(here, server, "echo", not_asked, **question)
    assert isinstance(needed, InputRequired)
    assert needed.requests == (InputRequest("a", "Which size?", FORM),)
    async with pooled(tmp_path / "elsewhere", LIMITS) as there:
        given = GivenInput(needed.state, {"a": ANSWERED})
        (returned,) = await converse(there, server, "echo", not_asked, given, **question)
    assert isinstance(returned, Returned)
    assert json.loads(returned.result) == [
        "so far",
        {"a": {"action": "accept", "content": {"size": "M"}}},
    ]


async def test_server_that_asks_nothing_is_called_again(here: Pooled):
    with ToolServer(again, newest_only=True) as running:
        (returned,) = await converse(here, RemoteServer(running.url), "again", not_asked)
        assert isinstance(returned, Returned)
        assert returned.result == {"result": "done"}
        assert len(running.uses) == 3


async def test_server_that_wants_a_model_of_ours_gets_none(here: Pooled):
    with ToolServer(think, newest_only=True) as running:
        (returned,) = await converse(here, RemoteServer(running.url), "think", not_asked)
    assert isinstance(returned, Returned)
    assert returned.status == "error"


async def test_call_that_needs_an_address_to_be_opened_first_is_made_again(here: Pooled):
    is_signed_in = False

    async def sign_in() -> str:
        """Cannot begin before the user has signed in."""
        if not is_signed_in:
            asked = mcp.ElicitRequestURLParams(message="Sign in.", url=ADDRESS, elicitation_id="an-id")
            raise UrlElicitationRequiredError([asked])
        return "welcome"

    with ToolServer(sign_in) as running:
        server = RemoteServer(running.url)
        (needed,) = await converse(here, server, "sign_in", not_asked)
        assert isinstance(needed, InputRequired)
        (request,) = needed.requests
        assert (request.message, request.url) == ("Sign in.", ADDRESS)
        refused = GivenInput(needed.state, {request.key: DENIED})
        (denied,) = await converse(here, server, "sign_in", not_asked, refused)
        assert isinstance(denied, Returned) and denied.status == "denied"
        is_signed_in = True
        given = GivenInput(needed.state, {request.key: ALLOWED})
        (returned,) = await converse(here, server, "sign_in", not_asked, given)
        assert isinstance(returned, Returned)
        assert returned.result == {"result": "welcome"}
        assert len(running.uses) == 2


# What may be asked


def form(schema: Any, message: str = "?") -> Question | None:
    return question_of(mcp.ElicitRequestFormParams(message=message, requested_schema=schema))


def address(url: str) -> Question | None:
    return question_of(mcp.ElicitRequestURLParams(message="?", url=url))


@pytest.mark.parametrize(
    "field",
    [
        {
            "type": "string",
            "title": "Name",
            "minLength": 1,
            "maxLength": 9,
            "format": "email",
            "default": "x",
        },
        {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
        {"type": "number", "minimum": 0.5, "maximum": 2},
        {"type": "integer", "default": 3},
        {"type": "boolean", "default": False},
        {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1, "maxItems": 2},
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    ],
)
def test_field_that_mcp_knows_is_asked_as_it_is(field: dict[str, Any]):
    schema: dict[str, Any] = {"type": "object", "properties": {"field": field}, "required": []}
    question = form(schema)
    assert question is not None
    assert question.schema == schema


def test_rest_of_a_schema_is_left_out():
    field = {"type": "string", "pattern": "(a+)+$", "x-own": 1}
    question = form({"type": "object", "title": "T", "properties": {"a": field}, "$defs": {}})
    assert question is not None
    assert question.schema == {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"type": "string", "items": {"enum": ["a"]}}}},
        {"type": "object", "properties": {"a": {"type": "string", "title": "x\x00"}}},
        {"type": "object", "properties": {"a": {"type": "string", "description": "x" * 65_536}}},
    ],
)
def test_form_that_is_not_flat_or_too_large_is_declined(schema: Any):
    assert form(schema) is None


def test_message_that_is_too_long_is_declined():
    assert form(FORM, "x" * 4_000) is not None
    assert form(FORM, "x" * 4_001) is None


@pytest.mark.parametrize(
    "url", ["https://example.com/a?b=c#d", "http://localhost:8080/", "HTTPS://Example.com"]
)
def test_web_address_can_be_asked_for(url: str):
    assert address(url) == Question("?", url=url)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://",
        "https://bank.example@evil.example/",
        "https://exa mple.com/",
        "https://example.com/\u202e",
        "https://example.com\\@evil.example/",
        "https://example.com:x/",
        f"https://example.com/{'x' * 2_000}",
    ],
)
def test_other_address_is_declined(url: str):
    assert address(url) is None


def test_answer_that_no_form_has_is_declined():
    nested = Decision(action=ApprovalAction.ANSWER, at=NOW, content={"a": {"b": 1}})
    assert elicit_result(nested, is_form=True).action == "decline"
    text = Decision(action=ApprovalAction.ANSWER, at=NOW, content="yes")
    assert elicit_result(text, is_form=True).action == "decline"
    assert elicit_result(text, is_form=False) == mcp.ElicitResult(action="accept")
