"""A server for development that starts again when a file changes."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import httpx
import pytest

from tests.serving import END_S, Server, run
from threadkeep.http.server.reloader import WatchedFiles

FIRST = """
    import asyncio
    from pathlib import Path
    from threadkeep.agents import agent

    def note(word):
        with open("noted.txt", "a") as file:
            file.write(word)
        return word

    @agent(name="Orders", visibility="public")
    async def orders(turn):
        await turn.step(note, "a")
        while not Path("go").exists():
            await asyncio.sleep(0.02)
        await turn.step(note, "b")
        return "The first code."
"""


def write(folder: Path, program: str) -> None:
    (folder / "shop.py").write_text(dedent(program))


def wait_for(is_so: Callable[[], bool], server: Server) -> None:
    end = time.monotonic() + END_S
    while not is_so():
        assert time.monotonic() < end and server.process.poll() is None, server.output
        time.sleep(0.02)


def begin(client: httpx.Client) -> str:
    agents = client.get("/api/agents").json()["items"]
    agent_id = next(it["id"] for it in agents if it["name"] == "Orders")
    conversation = client.put(f"/api/agents/{agent_id}/conversation").json()["id"]
    path, body = f"/api/conversations/{conversation}/messages", {"content": "Go."}
    sent = client.post(path, json=body, headers={"Accept": "application/json"})
    assert sent.status_code == 202, sent.text
    return conversation


def last_message(client: httpx.Client, conversation: str) -> dict[str, str]:
    return client.get(f"/api/conversations/{conversation}/messages").json()["items"][-1]


def test_turn_goes_on_with_the_changed_code_and_a_broken_file_is_waited_for(tmp_path: Path):
    write(tmp_path, FIRST)
    with Server(tmp_path, "--agents", "shop:orders", "--reload") as server, server.client() as client:
        conversation = begin(client)
        wait_for((tmp_path / "noted.txt").exists, server)
        write(tmp_path, "import nothing_of_this_name\n")
        wait_for(lambda: "It starts again when a file changes." in server.output, server)
        assert f"{tmp_path / 'shop.py'}, line 1: ModuleNotFoundError" in server.output
        write(tmp_path, FIRST.replace("The first code.", "The second code."))
        wait_for(lambda: "Reloaded in" in server.output, server)
        (tmp_path / "go").touch()
        wait_for(lambda: last_message(client, conversation)["status"] == "COMPLETED", server)
        assert last_message(client, conversation)["content"] == "The second code."
        assert (tmp_path / "noted.txt").read_text() == "ab"  # no step ran twice
        assert server.output.count("listening on") == 1
        assert server.stop(signal.SIGINT) == 0
        with pytest.raises(httpx.ConnectError):
            client.get("/healthz")


def test_reloading_is_refused_where_it_would_not_work(tmp_path: Path):
    for arguments, message in (
        ((), "--reload watches the files of agents in code"),
        (("--agents", "shop:orders", "--processes", "2"), "--processes"),
        (("--agents", "shop:orders", "--host", "0.0.0.0"), "0.0.0.0"),
    ):
        settings = {"jwt_secret": "x" * 32, "database_url": "postgresql://nobody@127.0.0.1:1/none"}
        ended = run("serve", "--reload", *arguments, folder=tmp_path, **settings)
        assert ended.returncode == 1 and message in ended.stderr, ended.stderr


def test_files_of_environments_and_caches_are_not_watched(tmp_path: Path):
    for name in ("shop/deep", ".hidden", "venv", "__pycache__", "lib/site-packages"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    watched = WatchedFiles([tmp_path])
    for name in (".hidden/a.py", "venv/a.py", "__pycache__/a.py", "lib/site-packages/a.py", "notes.txt"):
        (tmp_path / name).touch()
    assert watched.changed() == []
    new, deep = tmp_path / "shop.py", tmp_path / "shop" / "deep" / "prices.py"
    new.touch()
    deep.touch()
    assert watched.changed() == sorted([new, deep]) and watched.changed() == []
    os.utime(new, ns=(1, 1))
    deep.unlink()
    assert watched.changed() == sorted([new, deep])


def test_a_single_file_is_watched_alone(tmp_path: Path):
    only = tmp_path / "agent.py"
    watched = WatchedFiles([only])
    (tmp_path / "other.py").touch()
    assert watched.changed() == []
    only.touch()
    assert watched.changed() == [only]
