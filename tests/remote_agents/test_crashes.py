"""Turns of agents that another server runs, with a crash of ours; `tests/clients/ag_ui_agents` has all."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.remote_agents.ag_ui_server import AgUiServer, Request, ag_ui_server
from threadkeep.agents import Turn, agent
from threadkeep.client import Client, ClientError, NotReached, TurnWaiting
from threadkeep.testing import ScriptedModel
from threadkeep.testing.commits import Position, commits_in
from threadkeep.testing.crashes import InProcess, Life, Lives, positions
from threadkeep.testing.diaries import DiaryFile
from threadkeep.wire.messages import MessageView

WHOLE = "Let me see. \n\nRefunded."
SETTINGS: dict[str, Any] = {"agents_pause_after_s": 0.05}


@agent
async def unused(turn: Turn) -> str:
    return turn.text


async def refunds(request: Request) -> None:
    """The first run calls a tool and asks; the second refunds."""
    await request.begin()
    if "resume" in request.body:
        await request.event("TOOL_CALL_RESULT", toolCallId="c1", messageId="r1", content="done")
        await request.say("Refunded.", "m2")
        await request.finish()
        return
    await request.say("Let me see. ", "m1")
    await request.call("c1", "refund", {"order": 7})
    asked = {"id": "i1", "reason": "approval", "message": "Refund?"}
    await request.finish(outcome={"type": "interrupt", "interrupts": [asked]})


async def drive(client: Client, url: str, *, repeat: bool) -> MessageView:
    """The turn to its end, from wherever an earlier life has left it."""
    known = [it async for it in client.agents()]
    mine = next((it for it in known if it.name == "Remote"), None)
    engine = {"kind": "ag-ui", "url": url, "repeat": repeat}
    mine = mine or await client.create_agent("Remote", engine=engine)
    found = [it async for it in client.conversations() if it.agent_id == mine.id]
    conversation = found[0] if found else await client.create_conversation(mine.id, title="Test")
    turns = [it.turn_id async for it in client.messages(conversation.id) if it.turn_id]
    turn_id = turns[0] if turns else (await client.start(conversation.id, "Refund 7")).turn_id
    while True:
        try:
            return await client.reply(turn_id)
        except TurnWaiting as exc:
            for it in exc.approvals:
                await client.answer(turn_id, it.request_id, "answer", content="yes")


async def _first(crashed: Awaitable[object], driving: Awaitable[MessageView]) -> MessageView | None:
    """How the turn ended; None if Threadkeep crashed before."""
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(crashed), asyncio.ensure_future(driving)]
    try:
        async with asyncio.timeout(60):
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0] not in done and isinstance(tasks[1].exception(), ClientError | NotReached):
                await tasks[0]
        return None if tasks[0].done() else tasks[1].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def live(
    lives: Lives, folder: Path, url: str, *, repeat: bool, at: Position | None = None
) -> MessageView | None:
    """One life of Threadkeep with the turn."""
    async with AsyncExitStack() as stack:
        life: Life = await stack.enter_async_context(
            lives.live(unused, folder, SETTINGS, ScriptedModel(), at)
        )
        return await _first(life.crashed(), drive(life.client, url, repeat=repeat))


def check(reply: MessageView | None, server: AgUiServer, at: Position, *, repeat: bool) -> None:
    """What must hold after a crash."""
    assert reply is not None, at
    asked = Counter(it["runId"] for it in server.bodies)
    if repeat:
        assert (reply.status, reply.content) == ("COMPLETED", WHOLE), (at, reply.error)
        assert len(asked) == 2, at
    else:
        assert max(asked.values(), default=0) <= 1, f"{at}: a run that may have had an effect was made twice"
        assert reply.status == "COMPLETED" or (reply.error and reply.error.code == "INTERRUPTED"), (at, reply)
        assert WHOLE.startswith(str(reply.content)), (at, reply.content)
    calls = [(it.tool_name, it.status) for it in reply.tool_calls]
    if reply.status == "COMPLETED":
        assert reply.content == WHOLE, at
        assert calls == [("refund", "ok")], at


async def crash_at_all(lives: Lives, tmp_path: Path, *, repeat: bool, only: slice = slice(None)) -> int:
    """Crashes at every commit; returns at how many."""
    whole = tmp_path / "whole"
    whole.mkdir()
    async with ag_ui_server(refunds) as server:
        reply = await live(lives, whole, server.url, repeat=repeat)
        assert reply is not None
        assert reply.content == WHOLE
    found = [*positions(commits_in(DiaryFile(whole / "diary")))]
    for number, (_, at) in enumerate(found[only]):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        async with ag_ui_server(refunds) as server:
            ended = await live(lives, folder, server.url, repeat=repeat, at=at)
            check(ended or await live(lives, folder, server.url, repeat=repeat), server, at, repeat=repeat)
    return len(found[only])


@pytest.mark.parametrize("repeat", [False, True])
async def test_crash_repeats_only_what_may_be_repeated(tmp_path: Path, repeat: bool):
    assert await crash_at_all(InProcess({}), tmp_path, repeat=repeat, only=slice(4, None, 9)) > 2
