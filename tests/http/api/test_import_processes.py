"""What a stranger's file costs ends with its import, and nobody waits for it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE, Api
from tests.http.api.test_imports import begin, ended, in_json, numbered
from tests.http.calls import Json, items
from tests.mcp.running import is_alive
from threadkeep.confined import isolated
from threadkeep.confined.process import start_confined
from threadkeep.imports import confined
from threadkeep.testing import until


def called(title: str, number: int = 1) -> Json:
    return numbered(number) | {"title": title}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Sequence[int]:
    """The processes of imports, one of which burns if it is told to."""
    started: list[int] = []
    folders = [*isolated.package_folders(), str(Path(__file__).parents[3])]

    async def start(module: str, *given: Any, **more: Any) -> Any:
        process = await start_confined("tests.imports.burning_process", *given, **more)
        started.append(process.pid)
        return process

    monkeypatch.setattr(isolated, "package_folders", lambda: folders)
    monkeypatch.setattr(confined, "start_confined", start)
    return started


async def burning(client: httpx.AsyncClient) -> httpx.Response:
    """An import that has come to a conversation without end."""
    begun = await begin(client, "a.json", in_json(numbered(0), called("burns"), numbered(2)))
    assert begun.status_code == 202, begun.text

    async def has_come() -> bool:
        return (await client.get(f"/api/imports/{begun.json()['id']}")).json()["done"] == 1

    await until(has_come)
    return begun


async def until_gone(processes: Sequence[int]) -> None:
    assert processes
    await until(lambda: not any(map(is_alive, processes)))


async def test_import_that_burns_is_stopped(api: Api, alice: httpx.AsyncClient, processes: Sequence[int]):
    begun = await burning(alice)
    assert is_alive(processes[-1])
    await alice.post(f"/api/imports/{begun.json()['id']}/stop")
    run = await ended(alice, begun)
    assert (run["status"], run["imported"], run["error"]) == ("STOPPED", 1, None)
    await until_gone(processes)


async def test_import_that_burns_ends_with_its_user(
    api: Api, alice: httpx.AsyncClient, processes: Sequence[int]
):
    await burning(alice)
    assert (await alice.delete("/api/users/alice")).status_code == 204
    runs: Any = (await api.app.services()).import_runs
    await until(lambda: not runs._running)
    await until_gone(processes)
    assert await items(api.as_new_user("alice"), "/api/conversations") == []


async def test_import_that_burns_ends_with_the_server(
    api: Api, alice: httpx.AsyncClient, processes: Sequence[int]
):
    begun = await burning(alice)
    await (await api.app.services()).import_runs.close()
    run = await ended(alice, begun)
    assert (run["status"], run["imported"]) == ("INTERRUPTED", 1)
    await until_gone(processes)


@ONLY_SQLITE
async def test_imports_that_burn_keep_nobody_from_importing(
    api: Api, alice: httpx.AsyncClient, bob: httpx.AsyncClient, processes: Sequence[int]
):
    endless = [await burning(alice), await burning(bob)]
    carol = api.as_new_user("carol")
    run = await ended(carol, await begin(carol, "a.json", in_json(numbered(1), numbered(2))))
    assert (run["status"], run["imported"]) == ("COMPLETED", 2)
    for client, begun in zip((alice, bob), endless, strict=True):
        assert (await client.get(f"/api/imports/{begun.json()['id']}")).json()["status"] == "RUNNING"
        await client.post(f"/api/imports/{begun.json()['id']}/stop")
        await ended(client, begun)


@ONLY_SQLITE
async def test_conversation_that_costs_too_much_is_left_out(
    api: Api, alice: httpx.AsyncClient, processes: Sequence[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(confined, "CONVERSATION_CPU_S", 0.5)
    file = in_json(numbered(1), called("burns", 2), called("bloats", 3), numbered(4))
    run = await ended(alice, await begin(alice, "a.json", file))
    assert (run["status"], run["imported"], run["done"]) == ("COMPLETED", 2, 4)
    assert [(it["why"], it["reason"]) for it in run["problems"]] == [
        ("it takes too long to read", "too_large"),
        ("it needs more memory than allowed", "too_large"),
    ]


@ONLY_SQLITE
@pytest.mark.parametrize(("title", "reason"), [("burns", "too_large"), ("breaks", "damaged")])
async def test_import_whose_process_dies_has_failed(
    api: Api,
    alice: httpx.AsyncClient,
    processes: Sequence[int],
    monkeypatch: pytest.MonkeyPatch,
    title: str,
    reason: str,
):
    monkeypatch.setattr(confined, "LEAST_CPU_S", 3)
    run = await ended(alice, await begin(alice, "a.json", in_json(numbered(1), called(title, 2))))
    assert (run["status"], run["imported"], run["error"]["reason"]) == ("FAILED", 1, reason)
    assert len(await items(alice, "/api/conversations")) == 1
    await until_gone(processes)


@ONLY_SQLITE
async def test_import_that_waits_for_its_turn_needs_no_process(
    api: Api, alice: httpx.AsyncClient, processes: Sequence[int], monkeypatch: pytest.MonkeyPatch
):
    runs: Any = (await api.app.services()).import_runs
    monkeypatch.setattr(runs, "_room", asyncio.Semaphore(0))
    begun = await begin(alice, "a.json", in_json(numbered(1)))
    assert begun.status_code == 202
    await until_gone(processes)
    await alice.post(f"/api/imports/{begun.json()['id']}/stop")
    assert (await ended(alice, begun))["status"] == "STOPPED"
