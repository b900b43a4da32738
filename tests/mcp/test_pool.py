"""The pool: servers are started once, shared, watched and ended; one that is sick harms no other."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mcp.running import ALICE, BOB, LIMITS, Pooled, chaos, is_alive, pooled, until
from threadkeep.domain.ids import ConversationId, new_uuid
from threadkeep.domain.mcp import ServerScope, StdioServer
from threadkeep.domain.secret import MASK
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.processes.guard import NICENESS
from threadkeep.mcp.processes.process import ServerProcess
from threadkeep.mcp.processes.programs import ServerKey
from threadkeep.mcp.sessions.incoming import TOO_LARGE
from threadkeep.ports.mcp import ServerState
from threadkeep.ports.tools import Progress, Returned


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Pooled]:
    """A pool that must leave nothing behind."""
    async with pooled(tmp_path, LIMITS) as here:
        yield here


async def test_server_is_started_once_and_shared_by_users(here: Pooled):
    server = chaos()
    assert "echo" in await here.tools(server)
    all_returned = await asyncio.gather(
        *(here.call(server, "echo", user, text=user) for user in (ALICE, BOB, ALICE))
    )
    assert [returned.result for returned in all_returned] == [ALICE, BOB, ALICE]
    assert len(here.pids()) == 1


async def test_each_user_has_a_process_where_the_scope_says_so(here: Pooled):
    server = chaos(scope=ServerScope.USER)
    environments = [
        json.loads((await here.call(server, "environment", user)).result) for user in (ALICE, BOB)
    ]
    assert [environment["THREADKEEP_USER_ID"] for environment in environments] == [ALICE, BOB]
    assert len(set(here.pids())) == 2


async def test_server_gets_its_own_variables_and_none_of_ours(here: Pooled, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("THREADKEEP_JWT_SECRET", "ours")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "ours")
    server = chaos(env={"API_KEY": "theirs"}, cwd="data")
    environment = json.loads((await here.call(server, "environment")).result)
    workspace = here.workspaces.of(here.agent_id)
    assert "ours" not in environment.values()
    assert environment["API_KEY"] == "theirs"
    assert environment["PROMPTX_PROJECT_DIR"] == str(workspace)
    assert environment["cwd"] == environment["PWD"] == str(workspace / "data")
    known = {"PATH", "CHAOS_PIDS", "API_KEY", "PROMPTX_PROJECT_DIR", "PWD", "cwd", "LC_CTYPE"}
    assert set(environment) <= known


async def test_folder_that_leads_out_of_the_workspace_is_not_used(here: Pooled, tmp_path: Path):
    workspace = here.workspaces.of(here.agent_id)
    workspace.mkdir(parents=True)
    (workspace / "out").symlink_to(tmp_path)
    with pytest.raises(LinkBroken, match="outside the agent's workspace"):
        await here.tools(chaos(cwd="out/new"))
    assert not (tmp_path / "new").exists()


async def test_progress_comes_before_the_outcome(here: Pooled):
    steps = await here.steps(chaos(), "progress")
    assert steps == [
        Progress(1, 3, "step 1"),
        Progress(2, 3, "step 2"),
        Progress(3, 3, "step 3"),
        Returned("ok", "done"),
    ]


async def test_closing_a_call_cancels_it_at_the_server_and_nothing_else(here: Pooled):
    server = chaos()
    await here.tools(server)
    calls = [here.pool.call(here.key(server), server, "hang", {}) for _ in range(3)]
    waiting = [asyncio.ensure_future(anext(call)) for call in calls]
    await until(lambda: len(here.pids()) == 1)
    assert (await here.call(server, "echo", text="meanwhile")).result == "meanwhile"
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    for call in calls:
        await call.aclose()

    async def cancelled() -> list[int]:
        return json.loads((await here.call(server, "cancelled")).result)

    while len(set(await cancelled())) < 3:
        pass
    assert len(here.pids()) == 1


async def test_server_that_stops_responding_after_a_call_was_given_up_is_replaced(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, ping_s=0.2)) as here:
        server = chaos()
        call = here.pool.call(here.key(server), server, "freeze", {})
        assert await anext(call) == Progress(1, 2, "begun")
        await call.aclose()
        await until(lambda: not is_alive(here.pids()[0]))
        await until(lambda: here.pool.statuses(here.agent_id)["chaos"].error == "It stopped responding.")
        assert (await here.call(server, "echo", text="again")).result == "again"
        assert len(here.pids()) == 2


async def test_crash_in_a_call_is_its_outcome_and_the_next_call_gets_a_new_process(here: Pooled):
    server = chaos()
    returned = await here.call(server, "crash")
    assert returned == Returned(
        "error",
        error="Lost the connection to the server. It exited with code 3: chaos: this is the end",
        lost=True,
    )
    assert (await here.call(server, "echo", text="again")).result == "again"
    assert len(here.pids()) == 2


async def test_server_that_keeps_crashing_is_left_alone_for_a_while(here: Pooled):
    server = chaos()
    await here.call(server, "crash")
    await here.call(server, "crash")
    returned = await here.call(server, "echo", text="again")
    assert returned.error
    assert "this is the end Retrying in 1 s." in returned.error
    status = await here.pool.test(here.key(server), server)
    assert status.state is ServerState.READY
    assert len(here.pids()) == 3


async def test_server_that_ends_at_once_is_away_with_its_reason_and_without_its_secret(here: Pooled):
    server = chaos("exit", {"API_KEY": "top-secret"})
    with pytest.raises(LinkBroken) as broken:
        await here.tools(server)
    assert str(broken.value) == f"It exited with code 7: chaos: I will not serve {MASK}"
    status = here.pool.statuses(here.agent_id)["chaos"]
    assert status.state is ServerState.FAILED
    assert status.error == str(broken.value)
    assert MASK in status.stderr
    assert "top-secret" not in status.stderr


async def test_program_that_is_not_there_is_named(here: Pooled):
    with pytest.raises(LinkBroken, match="The program `no-such-program` isn't installed on this machine"):
        await here.tools(StdioServer("no-such-program"))


async def test_tool_failure_is_data_and_holds_no_secret(here: Pooled):
    returned = await here.call(chaos(env={"API_KEY": "top-secret"}), "fail")
    assert returned == Returned("error", error=f"no luck with {MASK}")


async def test_slow_server_is_waited_for_once_and_is_there_later(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, budget_s=0.3)) as here:
        server = chaos("slow1.5")
        for _ in range(2):
            with pytest.raises(LinkBroken, match="It is still starting"):
                await here.tools(server)
        assert here.pool.statuses(here.agent_id)["chaos"].state is ServerState.CONNECTING
        await until(lambda: here.pool.statuses(here.agent_id)["chaos"].state is ServerState.READY)
        assert "echo" in await here.tools(server)
        assert len(here.pids()) == 1


async def test_server_that_never_greets_is_given_up(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, connect_s=0.5)) as here:
        with pytest.raises(LinkBroken, match=r"It didn't respond within 0\.5 seconds"):
            await here.tools(chaos("silent"))
        await until(lambda: not is_alive(here.pids()[0]))


@pytest.mark.parametrize("mode", ["garbage", "noise", "stderr"])
async def test_server_that_is_noisy_is_understood(here: Pooled, mode: str):
    server = chaos(mode)
    assert (await here.call(server, "echo", text="hello")).result == "hello"
    status = here.pool.statuses(here.agent_id)["chaos"]
    assert len(status.stderr) <= 64 * 1024
    if mode == "garbage":
        assert "isn't an MCP message: b'Welcome to chaos!'" in status.stderr


async def test_line_without_an_end_takes_no_memory_and_the_server_is_given_up(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, connect_s=1)) as here:
        with pytest.raises(LinkBroken, match="didn't respond"):
            await here.tools(chaos("endless"))


async def test_huge_result_is_an_error_and_the_server_lives_on(here: Pooled):
    server = chaos()
    returned = await here.call(server, "big", bytes=20_000_000)
    assert (returned.status, returned.error) == ("error", TOO_LARGE)
    assert (await here.call(server, "echo", text="hello")).result == "hello"
    assert len(here.pids()) == 1


async def test_large_result_comes_through(here: Pooled):
    assert (await here.call(chaos(), "big", bytes=8_000_000)).result == "x" * 8_000_000


async def test_response_that_is_no_result_is_an_error(here: Pooled):
    returned = await here.call(chaos(), "nonsense")
    assert returned == Returned("error", error="The server's response isn't a valid MCP result.")


async def test_responses_to_nobody_and_second_responses_are_passed_over(here: Pooled):
    assert (await here.call(chaos(), "twice")).result == "first"
    assert (await here.call(chaos(), "echo", text="hello")).result == "hello"
    assert len(here.pids()) == 1


async def test_servers_give_way_to_those_who_talk(here: Pooled):
    await here.tools(chaos())
    (pid,) = here.pids()
    ours, theirs = (os.getpriority(os.PRIO_PROCESS, it) for it in (0, pid))
    assert theirs == min(19, ours + NICENESS)


async def test_unknown_tool_is_an_error_of_the_server(here: Pooled):
    returned = await here.call(chaos(), "fly")
    assert returned == Returned("error", error="There is no tool fly.")


async def test_changed_tools_are_seen_in_the_next_turn(here: Pooled):
    server = chaos()
    assert "new_tool" not in await here.tools(server)
    await here.call(server, "change")
    assert "new_tool" in await here.tools(server)


async def test_server_that_no_longer_tells_its_tools_is_away_each_time(here: Pooled):
    await here.call(chaos(), "hide")
    for _ in range(2):
        with pytest.raises(LinkBroken, match="It doesn't list its tools"):
            await here.tools(chaos())
    assert len(here.pids()) == 1


async def test_children_of_a_server_end_with_it_even_those_that_left_its_group(here: Pooled):
    await here.call(chaos(), "children")
    assert len(here.pids()) == 3
    assert all(is_alive(pid) for pid in here.pids())
    await here.pool.close()
    assert not any(is_alive(pid) for pid in here.pids())


async def test_children_of_a_server_that_was_killed_end_too(here: Pooled):
    server = chaos()
    await here.call(server, "children")
    os.kill(here.pids()[0], signal.SIGKILL)
    await until(lambda: not any(is_alive(pid) for pid in here.pids()))
    # A call before the end is noticed gets an error; the next one gets a new server.
    all_returned = [await here.call(server, "echo", text="again") for _ in range(2)]
    assert all_returned[1].result == "again"


async def test_server_that_ignores_being_asked_to_end_is_killed(here: Pooled):
    await here.tools(chaos("stubborn"))
    await here.pool.close()
    assert not is_alive(here.pids()[0])


async def test_server_that_does_not_listen_holds_up_nobody_who_gives_up(here: Pooled):
    server = chaos()
    await here.call(server, "deaf")
    calls = [here.pool.call(here.key(server), server, "echo", {"text": "x" * 100_000}) for _ in range(8)]
    waiting = [asyncio.ensure_future(anext(call)) for call in calls]
    await asyncio.sleep(0.1)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    for call in calls:
        await call.aclose()


async def test_idle_server_is_ended_and_comes_back(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, idle_s=0.2)) as here:
        server = chaos()
        await here.tools(server)
        await until(lambda: not is_alive(here.pids()[0]))
        assert here.pool.statuses(here.agent_id)["chaos"].state is ServerState.IDLE
        assert (await here.call(server, "echo", text="again")).result == "again"


async def test_the_idlest_server_makes_room_for_another(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, most_servers=2)) as here:
        for name in ("a", "b"):
            await here.tools(chaos(), name=name)
        await here.call(chaos(), "echo", name="a", text="used later")
        await here.tools(chaos(), name="c")
        states = {name: it.state for name, it in here.pool.statuses(here.agent_id).items()}
        assert states == {"a": ServerState.READY, "b": ServerState.IDLE, "c": ServerState.READY}
        assert [is_alive(pid) for pid in here.pids()] == [True, False, True]


async def test_server_that_is_slow_to_end_holds_nobody_else_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    close, ending, may_end = ServerProcess.close, asyncio.Event(), asyncio.Event()

    async def close_slowly(process: ServerProcess) -> None:
        if not ending.is_set():
            ending.set()
            await may_end.wait()
        await close(process)

    monkeypatch.setattr(ServerProcess, "close", close_slowly)
    async with pooled(tmp_path, replace(LIMITS, most_servers=2)) as here:
        for name in ("slow", "quick"):
            await here.tools(chaos(), name=name)
        third = asyncio.create_task(here.tools(chaos(), name="third"))
        await ending.wait()
        try:
            await here.tools(chaos(), name="fourth")
            assert not third.done(), "three servers in two slots"
        finally:
            may_end.set()
        await third
        assert [is_alive(pid) for pid in here.pids()] == [False, False, True, True]


async def test_idle_server_that_is_being_ended_takes_no_call(here: Pooled):
    server = chaos()
    await here.tools(server)
    here.pool.keep_only(here.agent_id, ())
    # Without an await in between: the process still runs.
    assert (await here.call(server, "echo", text="to the next one")).result == "to the next one"
    assert len(here.pids()) == 2


async def test_busy_servers_make_no_room(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, most_servers=1)) as here:
        server = chaos()
        call = here.pool.call(here.key(server), server, "hang", {})
        waiting = asyncio.ensure_future(anext(call))
        await until(lambda: len(here.pids()) == 1)
        with pytest.raises(LinkBroken, match="All 1 server slots are in use"):
            await here.tools(chaos(), name="other")
        waiting.cancel()
        await asyncio.wait([waiting])
        await call.aclose()


async def test_changed_configuration_gets_a_new_process(here: Pooled):
    await here.tools(chaos(env={"API_KEY": "one"}))
    returned = await here.call(chaos(env={"API_KEY": "two"}), "environment")
    assert json.loads(returned.result)["API_KEY"] == "two"
    await until(lambda: not is_alive(here.pids()[0]))


async def test_changed_configuration_finds_room_in_a_full_pool(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, most_servers=1)) as here:
        for key in ("one", "two"):
            assert (await here.call(chaos("stubborn", {"API_KEY": key}), "echo", text=key)).result == key


async def test_turn_waits_no_longer_for_a_server_to_end_than_for_it_to_start(tmp_path: Path):
    async with pooled(tmp_path, replace(LIMITS, budget_s=0.05)) as here:
        server = chaos("stubborn")
        assert (await here.pool.test(here.key(server), server)).state is ServerState.READY
        calling = asyncio.create_task(here.call(server, "mute"))
        await until(lambda: here.pool.statuses(here.agent_id)["chaos"].state is not ServerState.READY)
        with pytest.raises(LinkBroken, match=r"It is still (shutting down|starting)\."):
            await here.tools(server)
        assert (await calling).status == "error"


async def test_server_that_an_agent_no_longer_has_is_ended(here: Pooled):
    await here.tools(chaos())
    here.pool.keep_only(here.agent_id, ())
    await until(lambda: not is_alive(here.pids()[0]))
    assert here.pool.statuses(here.agent_id) == {}


async def test_server_of_one_conversation_is_ended_with_it(here: Pooled):
    mine, other = (ConversationId(new_uuid()) for _ in range(2))
    server = chaos(scope=ServerScope.CONVERSATION)
    for conversation in (mine, other):
        await here.pool.tools(ServerKey.of(here.agent_id, "chaos", server, ALICE, conversation), server)
    here.pool.end_those_of_conversation(mine)
    await until(lambda: [is_alive(it) for it in here.pids()] == [False, True])


async def test_closed_pool_starts_nothing(here: Pooled):
    await here.pool.close()
    returned = await here.call(chaos(), "echo", text="late")
    assert returned.error == "Couldn't connect to chaos: Threadkeep is shutting down."
    assert here.pids() == []


async def test_closing_while_a_server_starts_leaves_nothing(here: Pooled):
    starting = asyncio.create_task(here.tools(chaos("silent")))
    await until(lambda: len(here.pids()) == 1)
    await here.pool.close()
    with pytest.raises(LinkBroken):
        await starting


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_closing_at_any_moment_of_a_start_leaves_nothing(here: Pooled, steps: int):
    starting = asyncio.create_task(here.tools(chaos("silent")))
    for _ in range(steps):
        await asyncio.sleep(0.002)
    await here.pool.close()
    with pytest.raises(LinkBroken):
        await starting


def test_start_of_threadkeep_does_not_load_the_sdk():
    """It takes about a second, and many never need it."""
    code = "import sys, threadkeep.cli.serve; sys.exit('mcp' in sys.modules or 'pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
