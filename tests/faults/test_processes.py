"""`threadkeep serve --processes 2`: two processes behind one port, each of them a node."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from tests.conftest import TEMPLATE
from tests.faults.test_turn_nodes import Client, check_whole, node_settings, texts
from tests.postgres import Postgres
from tests.serving import Server, run
from threadkeep.domain.ids import new_uuid
from threadkeep.testing import Gate, Say, ScriptedModel, Wait
from threadkeep.testing.waiting import until

READY = re.compile(r"worker (\d) \(process (\d+)\) is ready")


def start(folder: Path, postgres: Postgres, model: ScriptedModel) -> Server:
    url = postgres.create_database(template=TEMPLATE)
    return Server(folder, "--processes", "2", **node_settings(url, model))


@pytest.fixture
def server(tmp_path: Path, postgres: Postgres, model: ScriptedModel) -> Iterator[Server]:
    with start(tmp_path, postgres, model) as server:
        yield server


def processes(server: Server) -> dict[str, int]:
    """The processes that have started, by their numbers."""
    return {number: int(pid) for number, pid in READY.findall(server.output)}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def worker_of(http: httpx.AsyncClient, server: Server) -> str:
    """The worker that this client is connected to, by the line that it logs for a request."""
    request_id = new_uuid()
    await http.get("/healthz", headers={"X-Request-Id": request_id})
    line = re.compile(rf"worker=(\d) request={request_id}")
    await until(lambda: line.search(server.output) is not None)
    found = line.search(server.output)
    assert found
    return found[1]


async def clients_of_both(server: Server, stack: AsyncExitStack) -> dict[str, Client]:
    """A user of each worker, by its number."""
    await until(lambda: len(processes(server)) == 2)
    found: dict[str, Client] = {}
    while len(found) < 2:
        http = await stack.enter_async_context(server.async_client())
        found.setdefault(await worker_of(http, server), Client(server, http))
    return found


async def test_each_worker_shows_the_turns_and_the_metrics_of_both(server: Server, model: ScriptedModel):
    gate = Gate()
    model.script([Say("shown "), Wait(gate), Say("by both")])
    async with AsyncExitStack() as stack:
        clients = await clients_of_both(server, stack)
        here, there = clients["1"], clients["2"]
        conversation = await here.conversation()
        turn_id = await here.begin(conversation)
        followed = asyncio.create_task(there.events(turn_id))
        await gate.reached()
        for client in clients.values():
            text = (await client.http.get("/metrics")).text
            assert 'threadkeep_turns_running{worker="1"} 1\n' in text
            assert 'threadkeep_turns_running{worker="2"} 0\n' in text
            assert text.count("# TYPE threadkeep_turns_running gauge\n") == 1
        gate.open()
        events = await followed
        check_whole(events)
        assert texts(events) == "shown by both"
        assert events == await here.events(turn_id)


async def test_killed_worker_is_restarted_and_the_other_continues_its_turns(
    server: Server, model: ScriptedModel
):
    gate = Gate()
    model.script([Say("half"), Wait(gate)], [Say("whole")])
    async with AsyncExitStack() as stack:
        clients = await clients_of_both(server, stack)
        conversation = await clients["2"].conversation()
        turn_id = await clients["2"].begin(conversation)
        followed = asyncio.create_task(clients["1"].events(turn_id))
        await gate.reached()
        killed = processes(server)["2"]
        os.kill(killed, signal.SIGKILL)
        events = await followed
        check_whole(events)
        assert texts(events).endswith("whole")
        assert (await clients["1"].reply(conversation))["status"] == "COMPLETED"
        await until(lambda: processes(server)["2"] != killed)
        assert f"worker 2 (process {killed}) was killed by SIGKILL; restarting it now" in server.output
        anew = await clients_of_both(server, stack)
        await anew["2"].check_goes_on(conversation)


async def test_signal_to_the_parent_drains_all_workers(server: Server, model: ScriptedModel):
    gate = Gate()
    model.script([Say("half"), Wait(gate)])
    async with AsyncExitStack() as stack:
        clients = await clients_of_both(server, stack)
        turn_id = await clients["1"].begin(await clients["1"].conversation())
        await clients["2"].until_text(turn_id)
        assert await asyncio.to_thread(server.stop) == 0
    assert not any(map(is_alive, processes(server).values()))
    assert "Traceback" not in server.output and "restarting" not in server.output


async def test_workers_do_not_outlive_their_parent(server: Server):
    await until(lambda: len(processes(server)) == 2)
    server.process.kill()
    await until(lambda: not any(map(is_alive, processes(server).values())))


def test_database_of_one_process_is_refused(tmp_path: Path):
    ended = run("serve", "--port", "0", "--workers", "2", folder=tmp_path)  # the earlier name
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "only one process can use a SQLite database. Set THREADKEEP_DATABASE_URL" in ended.stderr


def test_reason_not_to_start_is_given_once(tmp_path: Path):
    nowhere = "postgresql://127.0.0.1:1/nowhere"
    ended = run("serve", "--port", "0", "--processes", "2", folder=tmp_path, database_url=nowhere)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("Can't use the PostgreSQL database") == 1
