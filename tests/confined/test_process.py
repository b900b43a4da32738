"""Confined processes: they run our code only, reach nothing else, and are ended for good."""

import asyncio
import gc
import json
import re
import subprocess
import sys
import warnings
from asyncio.subprocess import DEVNULL
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from tests.mcp.running import is_alive
from threadkeep.confined import isolated
from threadkeep.confined.isolated import isolated_command
from threadkeep.confined.landlock import SINCE_PORTS, landlock_version
from threadkeep.confined.process import confined_environment, end_process, start_confined
from threadkeep.http.server.server import listen
from threadkeep.testing.waiting import until

SOURCE = Path(__file__).parents[2] / "src"
PROGRAMS = {"threadkeep.__main__", "threadkeep.testing.__main__"}
"""What people start; everything else that can run as a program is started by us."""

confined = pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")


def modules() -> dict[str, str]:
    files = sorted((SOURCE / "threadkeep").rglob("*.py"))
    return {".".join(it.relative_to(SOURCE).with_suffix("").parts): it.read_text() for it in files}


RUNS_AS_A_PROGRAM = re.compile("^if __name__ == .__main__.", re.MULTILINE)
WORKERS = sorted({name for name, text in modules().items() if RUNS_AS_A_PROGRAM.search(text)} - PROGRAMS)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, such as a cloned repository, with modules that are named like those of others."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    taken = f"open({str(tmp_path / 'taken')!r}, 'a').write(__name__)"
    for name in ("PIL", "docx", "json", "msgspec", "numpy", "pypdfium2", "sitecustomize", "threadkeep"):
        (folder / f"{name}.py").write_text(taken)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    subprocess.run([sys.executable, "-c", "import PIL"], check=True)
    assert (tmp_path / "taken").exists()
    (tmp_path / "taken").unlink()
    return folder


@pytest.mark.parametrize("module", WORKERS)
async def test_no_confined_process_runs_code_from_the_working_folder(hostile: Path, module: str):
    process = await start_confined(module)
    await asyncio.wait_for(process.communicate(), 60)
    # Those that run programs start in the program's folder.
    command = isolated_command(module)
    bare = await asyncio.create_subprocess_exec(*command, cwd=hostile, stdin=DEVNULL, stderr=DEVNULL)
    await asyncio.wait_for(bare.wait(), 60)
    assert not (hostile.parent / "taken").exists()


def test_only_one_place_starts_a_python():
    starting = [name for name, text in modules().items() if re.search(r"\bsys\.executable\b", text)]
    # Besides what is ours alone: a user's test starts servers with the agents that it imports, and
    # `threadkeep demo` the installer, whose command errors name.
    assert starting == [
        "threadkeep.cli.demo",
        "threadkeep.confined.isolated",
        "threadkeep.extras",
        "threadkeep.testing.processes",
    ]


async def probe(
    monkeypatch: pytest.MonkeyPatch,
    *tries: Sequence[str],
    reads: Sequence[Path] = (),
    writes: Sequence[Path] = (),
) -> list[str]:
    """What comes of it when a confined process tries these things."""
    folders = [*isolated.package_folders(), str(Path(__file__).parents[2])]
    monkeypatch.setattr(isolated, "package_folders", lambda: folders)
    module = "tests.confined.probing_process"
    process = await start_confined(module, json.dumps(tries), reads=reads, writes=writes)
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return json.loads(output)


async def test_worker_starts_in_no_folder_of_ours(monkeypatch: pytest.MonkeyPatch):
    assert await probe(monkeypatch, ["folder", ""]) == ["/"]


async def test_worker_finds_its_packages_where_the_host_has_them(monkeypatch: pytest.MonkeyPatch):
    """A host may find ours with PYTHONPATH or among the user's own packages, which isolated mode skips."""
    assert str(SOURCE) in isolated_command("threadkeep.mcp.processes.guard")[-2]
    own = ["/home/x/.local/lib/python3.11/site-packages", "", "relative/site-packages", "/home/x/project"]
    monkeypatch.setattr(sys, "path", [*sys.path, *own])
    folders = json.loads(isolated_command("threadkeep.mcp.sessions.call_result", with_packages=True)[-2])
    assert own[0] in folders
    assert not {*own[1:]} & {*folders}
    assert "PYTHONPATH" not in confined_environment()


@confined
async def test_worker_reads_what_it_is_given_and_writes_where_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given, other, folder = tmp_path / "given", tmp_path / "secret.key", tmp_path / "folder"
    folder.mkdir()
    for file in (given, other):
        file.write_text("words")
    places = [("read", given), ("read", other), ("write", folder / "new"), ("write", given), ("write", other)]
    tries = [(how, str(path)) for how, path in places]
    found = await probe(monkeypatch, *tries, reads=[given], writes=[folder])
    assert found == ["words", "PermissionError", "1", "PermissionError", "PermissionError"]


@pytest.mark.skipif(landlock_version() < SINCE_PORTS, reason="this kernel's Landlock has no rules for ports")
async def test_worker_has_no_network(monkeypatch: pytest.MonkeyPatch):
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert await probe(monkeypatch, ["connect", str(port)]) == ["PermissionError"]


async def test_process_is_seen_to_end_by_one_who_is_told_to_stop_again_and_again():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import time; time.sleep(600)"), start_new_session=True
    )
    ending = asyncio.create_task(end_process(process))
    while not ending.done():
        await asyncio.sleep(0)
        ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert process.returncode is not None
    assert not is_alive(process.pid)


@pytest.mark.parametrize("after", range(6))
def test_start_that_is_cancelled_twice_leaves_nothing_open(after: int):
    async def cancel_twice() -> None:
        starting = asyncio.create_task(start_confined("threadkeep.mcp.sessions.call_result"))
        for _ in range(after):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await end_process(await starting)

    gc.collect()
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        asyncio.run(cancel_twice())
        gc.collect()
    assert [str(it.message) for it in left_open] == []


async def test_worker_that_ended_by_itself_leaves_no_pipe_open(monkeypatch: pytest.MonkeyPatch):
    """Nobody read what it wrote, and asyncio closes a pipe only once it has been read."""

    def count(*_: object, **__: object) -> tuple[str, ...]:
        return ("seq", "6000")

    monkeypatch.setattr("threadkeep.confined.process.isolated_command", count)
    process = await start_confined("threadkeep.mcp.sessions.call_result", limit=1024)
    transport = cast("Any", process)._transport
    pipe = transport.get_pipe_transport(1).get_extra_info("pipe")
    await until(lambda: process.returncode is not None)
    assert not pipe.closed
    await end_process(process)
    assert pipe.closed
