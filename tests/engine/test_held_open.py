"""A server that holds its call open while it asks the user, and is gone before they answer."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from tests.engine.in_memory import InMemoryGateway, InMemoryTools, NobodyAsked
from tests.engine.test_loop import reply, use
from tests.engine.test_replay import steps_of
from threadkeep.domain.approval import Answer, ApprovalAction
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, Done, ToolResulted
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.engine.batch import Asking
from threadkeep.ports.gateway import TextDelta, ToolUse
from threadkeep.ports.tools import Asked, Outcome, Progress


class Requests(NobodyAsked):
    """Approvals of a turn whose user has not answered yet."""

    def __init__(self) -> None:
        self.given: dict[str, Answer] = {}

    async def ask(self, asking: Asking) -> None:
        """Nobody answers."""

    async def withdraw(self, request_id: str) -> bool:
        """Ends a request."""
        self.given[request_id] = Answer(action=ApprovalAction.EXPIRE, at=0)
        return True

    async def answers(self) -> Mapping[str, Answer]:
        """Those that have ended."""
        return self.given


async def asks_and_dies(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Outcome]:
    """Asks the user, and is gone."""
    waiting: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.01, waiting.cancel)
    yield Asked("Which size?", None, None, lambda _: None, waiting)
    yield Outcome("error", error="The server is gone.", lost=True)


@pytest.mark.parametrize("effect", list(ToolEffect))
async def test_server_that_dies_while_it_asks_keeps_nobody_waiting(effect: ToolEffect):
    tools = InMemoryTools(effect=effect, asks=asks_and_dies)
    gateway = InMemoryGateway(use(ToolUse("1", "asks", {})), reply(TextDelta("Well.")))
    async with asyncio.timeout(10):
        steps = await steps_of(gateway, tools, {}, approvals=Requests())
    told = [it for it in steps if isinstance(it, ApprovalRequest | ApprovalResponse | ToolResulted)]
    _, response, result = told
    assert isinstance(response, ApprovalResponse)
    assert isinstance(result, ToolResulted)
    assert response.action is ApprovalAction.EXPIRE
    assert result.status == ("error" if effect.is_repeatable else "unknown")
    assert isinstance(steps[-1], Done)
