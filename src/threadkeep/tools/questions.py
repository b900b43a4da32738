"""`ask_user`: lets the model ask the turn's user a question. The engine itself gets the answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.mcp import USER
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.tools import Caller, Progress, Returned, Tool

MOST_QUESTION_CHARACTERS = 4_000
MOST_CHOICES = 20
MOST_CHOICE_CHARACTERS = 200

ASK_USER = Tool(
    USER,
    "ask_user",
    "Ask the user a question and wait for the answer, when you cannot go on without it: a decision that is "
    "theirs, or something that only they know. One question at a time.",
    {
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": MOST_QUESTION_CHARACTERS},
            "choices": {
                "type": "array",
                "description": "Answers to choose from, where there are a few.",
                "items": {"type": "string", "minLength": 1, "maxLength": MOST_CHOICE_CHARACTERS},
                "minItems": 1,
                "maxItems": MOST_CHOICES,
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    timeout_s=0,
    is_own=True,
    effect=ToolEffect.READ,
    asks_user=True,
)


class QuestionServer:
    """Questions as a tool, if the agent's owner has enabled them."""

    name = USER

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """`ask_user`, or nothing."""
        return (ASK_USER,) if agent.settings.ask_user else ()

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """The same."""
        return self.offers(caller.agent)

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Never called: a question is for the user, not for a server."""
        yield Returned("error", error="The user can't be asked here.")
