"""Whole turns with tools, from the user's message to what is kept."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.engine.in_memory import InMemoryGateway, InMemoryModels, InMemoryTools, Step, adds, gives
from tests.making import ALICE, keep_agent, keep_conversation, spending_of
from tests.services.running import follow, stored_events, until_shown
from threadkeep.clock import system_clock
from threadkeep.context.cards import CardStyle
from threadkeep.context.tool_results import TURN_ENDED
from threadkeep.domain.caps import NO_CAPS, TurnCaps
from threadkeep.domain.events import Text, ToolCalled, ToolResultStored, TurnEvent
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.tool_call import ToolCallFilter, ToolCallStatus
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.domain.workspace import Workspaces
from threadkeep.engine.code.outside_calls import LiveRuns
from threadkeep.jobs.queue import Jobs
from threadkeep.loops import Loops
from threadkeep.mcp.catalog import Catalog
from threadkeep.metrics import Metrics
from threadkeep.ports.gateway import (
    ModelStopped,
    ModelUsage,
    TextBlock,
    TextDelta,
    ToolResultBlock,
    ToolUse,
    ToolUseBlock,
)
from threadkeep.ports.tools import Progress, Returned
from threadkeep.retrieval.index import DocumentIndex
from threadkeep.runtime.node import Node
from threadkeep.runtime.own_address import OwnAddress
from threadkeep.runtime.user_events import UserEvents
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.services.agents import Agents
from threadkeep.services.allowances import LocalAllowances
from threadkeep.services.client_tools import ClientTools
from threadkeep.services.creations import Creations
from threadkeep.services.equipment import Equipment
from threadkeep.services.files import Files
from threadkeep.services.history import History
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.prompts import Prompts
from threadkeep.services.replies.code_checks import CodeChecks
from threadkeep.services.replies.code_replies import CodeReplies
from threadkeep.services.replies.model_replies import ModelReplies
from threadkeep.services.replies.model_requests import ModelRequests
from threadkeep.services.replies.passages import Passages
from threadkeep.services.replies.program_starts import ProgramStarts
from threadkeep.services.replies.run_tokens import RunTokens
from threadkeep.services.replies.turn_starts import TurnStarts
from threadkeep.services.sending import NewMessage, Sending
from threadkeep.services.turns import Turns
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.database.connector import Database
from threadkeep.storage.jobs import SqlJobs
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import Store

USER = User(ALICE)
CATALOG = Catalog((), stdio_needs_admin=True, allow_private=False)


NO_LIMITS = LocalAllowances(TurnCaps())


@dataclass
class Talking:
    """The services of a node, and what is needed to talk through them."""

    store: Store
    node: Node
    jobs: Jobs
    history: History
    folder: Path

    async def ask(
        self, tools: InMemoryTools, *replies: Sequence[Step]
    ) -> tuple[Sending, InMemoryGateway, Turn]:
        """Begins a turn in a new conversation with a title."""
        gateway = InMemoryGateway(*replies)
        files = FolderPromptFiles(Workspaces(self.folder))
        models = InMemoryModels(gateway)
        choice = ModelChoice(models)
        agents = Agents(self.store, CATALOG, system_clock, choice)
        prompts = Prompts(self.store, agents, files, None, choice)
        passages = Passages(DocumentIndex(self.store.chunks, None))
        equipment = Equipment(
            models=models,
            choice=choice,
            tools=tools,
            schemas=SchemaChecker(),
            files=cast("Files", None),  # no tool returns an image
            spending=spending_of(self.store, models),
            clock=system_clock,
        )
        requests = ModelRequests(self.store, prompts, passages, CardStyle())
        model_replies = ModelReplies(self.store, equipment, requests, self.history, self.jobs)
        program_starts = ProgramStarts(
            self.store, self.node.programs, RunTokens(SecretBox()), OwnAddress(None)
        )
        code_replies = CodeReplies(
            self.store,
            model_replies,
            requests,
            program_starts,
            CodeChecks(self.store, program_starts, is_on=False),
            Metrics(),
            LiveRuns(),
            patience_s=10,
            pause_after_s=1,
        )
        creations = Creations(self.store.stored_bytes, NO_LIMITS, NO_CAPS)
        starts = TurnStarts(self.store, self.node.runner, model_replies, code_replies, NO_LIMITS, creations)
        sending = Sending(self.store, self.node, starts, ClientTools(tools), system_clock)
        conversation = await keep_conversation(self.store, await keep_agent(self.store), title="Tools")
        sent = await sending.send(USER, conversation.id, NewMessage("1 + 2?"))
        assert isinstance(sent, tuple)
        return sending, gateway, sent[0]

    async def reply(self, turn: Turn) -> Message:
        """The reply as it is kept."""
        reply = await self.store.messages.get(turn.conversation_id, turn.assistant_message_id)
        assert reply
        return reply


@pytest.fixture
async def talking(store: Store, database: Database, tmp_path: Path) -> AsyncIterator[Talking]:
    jobs = Jobs(SqlJobs(database), {}, Loops())
    bus = LocalBus()
    node = Node(store, bus, UserEvents(bus), system_clock, Metrics(), Loops(), alone=False)
    history = History(store, Loops())
    yield Talking(store, node, jobs, history, tmp_path)
    await node.close()
    await history.close()
    await jobs.close()


def kinds(events: list[TurnEvent]) -> list[str]:
    return [event.body.type for event in events]


@pytest.mark.requirement("001-R1-S1", "001-R1-S2")
async def test_text_tool_text_is_streamed_and_kept(talking: Talking, store: Store):
    tools = InMemoryTools(adds=adds, slow=gives(Progress(0.5, 1), Returned("error", error="No.")))
    used = [ToolUse("1", "adds", {"a": 1, "b": 2}), ToolUse("2", "slow", {})]
    _, gateway, turn = await talking.ask(
        tools,
        [TextDelta("Let me see. "), *used, ModelUsage(5, 5), ModelStopped("tool_use")],
        [TextDelta("Three."), ModelUsage(9, 1), ModelStopped("end_turn")],
    )
    events = await follow(talking.node, turn)
    assert {event.turn_id for event in events} == {turn.id}
    assert [it for it in kinds(events) if it not in {"tool_progress", "usage"}] == [
        "turn_start",
        "iteration_start", "text", "tool_call", "tool_call", "tool_result", "tool_result",
        "iteration_start", "text",
        "done",
    ]  # fmt: skip
    called = [it.body.tool_call_id for it in events if isinstance(it.body, ToolCalled)]
    resulted = [it.body.tool_call_id for it in events if isinstance(it.body, ToolResultStored)]
    assert (called, sorted(resulted)) == (["1", "2"], ["1", "2"])
    assert events == await stored_events(store, turn.id)

    reply = await talking.reply(turn)
    assert (reply.status, reply.content) == (MessageStatus.COMPLETED, "Let me see. \n\nThree.")
    assert [(it.tool_call_id, it.tool_name, it.status, it.result, it.error) for it in reply.tool_calls] == [
        ("1", "adds", ToolCallStatus.OK, {"sum": 3}, None),
        ("2", "slow", ToolCallStatus.ERROR, None, "No."),
    ]
    of_adds = ToolCallFilter(tool_name="adds")
    (kept,) = await store.messages.tool_calls(ALICE, of_adds, before=None, offset=0, limit=10)
    assert (kept.call.turn_id, kept.call.tool_call_id, kept.call.message_id) == (turn.id, "1", reply.id)
    assert len(gateway.requests) == 2


async def test_calls_with_the_same_id_are_kept_as_two_records(talking: Talking):
    _, _, turn = await talking.ask(
        InMemoryTools(adds=adds),
        [ToolUse("1", "adds", {"a": 1}), ToolUse("1", "adds", {"a": 2}), ModelStopped("tool_use")],
        [TextDelta("."), ModelStopped("end_turn")],
    )
    assert kinds(await follow(talking.node, turn))[-1] == "done"
    kept = (await talking.reply(turn)).tool_calls
    assert [(it.arguments, it.result) for it in kept] == [({"a": 1}, {"sum": 1}), ({"a": 2}, {"sum": 2})]


async def test_tool_call_is_stored_before_the_tool_runs(talking: Talking, store: Store):
    go_on = asyncio.Event()
    tools = InMemoryTools(waits=gives(go_on, Returned("ok", 1)))
    _, _, turn = await talking.ask(
        tools,
        [ToolUse("1", "waits", {}), ModelStopped("tool_use")],
        [TextDelta("."), ModelStopped("end_turn")],
    )
    following = asyncio.create_task(follow(talking.node, turn))
    while not tools.calls:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    assert kinds(await stored_events(store, turn.id))[-2:] == ["tool_call", "usage"]
    go_on.set()
    assert kinds(await following)[-1] == "done"


async def test_stopped_tool_leaves_a_conversation_that_can_be_continued(talking: Talking):
    never = asyncio.Event()
    tools = InMemoryTools(hangs=gives(never))
    sending, gateway, turn = await talking.ask(
        tools,
        [TextDelta("One moment. "), ToolUse("1", "hangs", {}), ModelStopped("tool_use")],
        [TextDelta("Again."), ModelStopped("end_turn")],
    )
    await until_shown(talking.node, turn, 5)
    assert await Turns(talking.store, talking.node).abort(USER, turn.conversation_id)
    reply = await talking.reply(turn)
    assert (reply.status, reply.content) == (MessageStatus.CANCELLED, "One moment. ")
    assert [it.status for it in reply.tool_calls] == [ToolCallStatus.INTERRUPTED]
    assert (gateway.open_streams, tools.open_calls) == (0, 0)
    sent = await sending.send(USER, turn.conversation_id, NewMessage("And now?"))
    assert isinstance(sent, tuple)
    second, _ = sent
    events = await follow(talking.node, second)
    assert Text("Again.") in [event.body for event in events]
    assert [block.blocks for block in gateway.requests[-1].messages][1:] == [
        (TextBlock("One moment. "), ToolUseBlock("1", "hangs", {})),
        (ToolResultBlock("1", TURN_ENDED, is_error=True), TextBlock("And now?")),
    ]
