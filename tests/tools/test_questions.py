"""The built-in tool with which a model asks the user."""

from typing import Any

import pytest

from tests.making import ALICE, NOW, make_agent
from threadkeep.domain.agent import AgentSettings
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.user import User
from threadkeep.ports.tools import Caller, Returned
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.tools.questions import ASK_USER, QuestionServer


def caller(*, ask_user: bool) -> Caller:
    agent = make_agent(settings=AgentSettings(ask_user=ask_user))
    return Caller(agent, User(ALICE), Conversation.start(ALICE, agent.id, NOW))


async def test_model_may_ask_only_where_the_owner_allows_it():
    assert await QuestionServer().tools(caller(ask_user=False)) == ()
    (tool,) = await QuestionServer().tools(caller(ask_user=True))
    assert tool is ASK_USER
    assert tool.asks_user and tool.is_own and tool.effect.is_repeatable


@pytest.mark.parametrize(
    ("arguments", "is_good"),
    [
        ({"question": "Which one?"}, True),
        ({"question": "Which one?", "choices": ["a", "b"]}, True),
        ({"question": ""}, False),
        ({"choices": ["a"]}, False),
        ({"question": "Which one?", "choices": []}, False),
        ({"question": "Which one?", "choices": [1]}, False),
    ],
)
async def test_question_is_a_text_with_or_without_choices(arguments: dict[str, Any], *, is_good: bool):
    problem = await SchemaChecker().problem(ALICE, ASK_USER.input_schema, arguments)
    assert (problem is None) == is_good


async def test_no_server_answers_in_the_place_of_the_user():
    calling = QuestionServer().call(caller(ask_user=True), "ask_user", {"question": "Which one?"})
    (returned,) = [step async for step in calling]
    assert isinstance(returned, Returned)
    assert returned.status == "error"
