"""A server that holds its call open while it asks the user, and is gone before they answer."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.in_memory import (
    InMemoryGateway,
    InMemoryTools,
    NobodyAsked,
    Run,
    gives,
    large_values,
    single,
)
from tests.engine.test_loop import REQUEST, TURN, UNLIMITED, build, reply, use
from tests.engine.test_replay import log_of, steps_of
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.events import ApprovalRequest, ApprovalResponse, Done, ToolResultStored, TurnStart
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.engine import batch
from threadkeep.engine.loop import Surroundings, TurnStep, run_turn
from threadkeep.engine.replay import TurnState, replay
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.engine.user_requests import Asking
from threadkeep.ports.gateway import TextDelta, ToolUse
from threadkeep.ports.tools import Asked, Progress, Returned
from threadkeep.schemas.checker import SchemaChecker


class Requests(NobodyAsked):
    """User requests of a turn whose user has not answered yet."""

    def __init__(self) -> None:
        self.given: dict[str, Decision] = {}

    async def ask(self, asking: Asking) -> None:
        """Nobody answers."""

    async def withdraw(self, request_id: str) -> bool:
        """Ends a request."""
        is_open = request_id not in self.given
        self.given.setdefault(request_id, Decision(action=ApprovalAction.EXPIRE, at=0))
        return is_open

    async def arrived(self) -> None:
        """Now and then somebody looks."""
        await asyncio.sleep(0.01)

    async def decisions(self) -> Mapping[str, Decision]:
        """Those that have ended."""
        return self.given


async def asks_and_dies(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Returned]:
    """Asks the user, and is gone."""
    waiting: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.01, waiting.cancel)
    yield Asked("Which size?", None, None, waiting)
    yield Returned("error", error="Lost the connection to the server.", lost=True)


def asks(message: str) -> Run:
    """A tool that asks this, and tells what it heard."""

    async def run(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Asked | Returned]:
        waiting: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
        yield Asked(message, None, "https://example.com/", waiting)
        decision = waiting.result()
        yield Returned("ok", result=decision and decision.action)

    return run


async def cut_off_while_asking(message: str, requests: Requests) -> tuple[TurnState, str]:
    """A turn whose node was lost while a tool that reads asked this; and the request."""
    tools = InMemoryTools(effect=ToolEffect.READ, asks=asks(message))
    gateway = InMemoryGateway(use(ToolUse("1", "asks", {})))
    steps: list[TurnStep] = [TurnStart("c", "q", "a", None)]
    turn_tools = TurnTools(Toolbox(tools, large_values(), SchemaChecker()), requests)
    around = Surroundings(models=TurnModels(gateway.model), tools=turn_tools, limits=UNLIMITED)
    async with aclosing(single(run_turn(TURN, build, around))) as run:
        async for step in run:
            if not isinstance(step, TurnReceipt):
                steps.append(step)
            if isinstance(step, ApprovalRequest):
                sent = replace(gateway.requests[0], messages=REQUEST.messages)
                return replay(log_of(steps), sent, {}), step.request_id
    raise AssertionError("nobody was asked")


async def again(state: TurnState, requests: Requests, run: Run) -> list[TurnStep]:
    """What the turn does on another node, with a tool that does this now."""
    tools = InMemoryTools(effect=ToolEffect.READ, asks=run)
    async with asyncio.timeout(10):
        return await steps_of(InMemoryGateway(reply(TextDelta("Well."))), tools, {}, state, requests)


async def test_call_that_runs_again_and_asks_the_same_is_told_what_the_user_has_decided():
    requests = Requests()
    state, request_id = await cut_off_while_asking("Delete 3 files?", requests)
    requests.given[request_id] = Decision(action=ApprovalAction.ANSWER, at=0)
    steps = await again(state, requests, asks("Delete 3 files?"))
    assert not any(isinstance(it, ApprovalRequest) for it in steps)
    assert [it.result for it in steps if isinstance(it, ToolResultStored)] == ["answer"]


async def test_call_that_runs_again_and_asks_something_else_has_no_decision_yet(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(batch, "HELD_OPEN_S", 0.01)
    requests = Requests()
    state, request_id = await cut_off_while_asking("Delete 3 files?", requests)
    requests.given[request_id] = Decision(action=ApprovalAction.ANSWER, at=0)
    steps = await again(state, requests, asks("Delete 5 files?"))
    assert [it.message for it in steps if isinstance(it, ApprovalRequest)] == ["Delete 5 files?"]
    assert [it.result for it in steps if isinstance(it, ToolResultStored)] == ["expire"]


async def test_call_that_runs_again_and_asks_nothing_leaves_no_request_open():
    requests = Requests()
    state, request_id = await cut_off_while_asking("Delete 3 files?", requests)
    steps = await again(state, requests, gives(Returned("ok", result="done")))
    ended = [it.request_id for it in steps if isinstance(it, ApprovalResponse)]
    assert ended == [request_id]


@pytest.mark.parametrize("effect", list(ToolEffect))
async def test_server_that_dies_while_it_asks_keeps_nobody_waiting(effect: ToolEffect):
    tools = InMemoryTools(effect=effect, asks=asks_and_dies)
    gateway = InMemoryGateway(use(ToolUse("1", "asks", {})), reply(TextDelta("Well.")))
    async with asyncio.timeout(10):
        steps = await steps_of(gateway, tools, {}, approvals=Requests())
    told = [it for it in steps if isinstance(it, ApprovalRequest | ApprovalResponse | ToolResultStored)]
    _, response, result = told
    assert isinstance(response, ApprovalResponse)
    assert isinstance(result, ToolResultStored)
    assert response.action is ApprovalAction.EXPIRE
    assert result.status == ("error" if effect.is_repeatable else "unknown")
    assert isinstance(steps[-1], Done)
