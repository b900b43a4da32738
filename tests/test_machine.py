import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.machine import OF_CI
from tests.serving import environment, run
from threadkeep import Settings
from threadkeep.client.client import USUAL_URL

ROOT = Path(__file__).parents[1]


class _Somebody(BaseHTTPRequestHandler):
    """A Threadkeep that the person who runs the tests uses."""

    calls: list[str]

    def do_GET(self) -> None:
        self.calls.append(self.path)
        self.send_response(200)
        self.send_header("Threadkeep-Version", "0.1.0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - as its base looks for it

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base names it
        pass


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """What the Threadkeep at the usual address is asked; if the person really has one, nobody sees it."""
    seen: list[str] = []
    port = int(USUAL_URL.rpartition(":")[2])
    try:
        server = HTTPServer(("127.0.0.1", port), type("_Theirs", (_Somebody,), {"calls": seen}))
    except OSError:
        yield seen
        return
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_nothing_of_a_person_is_found(tmp_path: Path):
    assert Settings.load() == Settings.load({}, port=0)
    assert not list(Path.home().glob("*threadkeep*"))  # other programs of tests may keep something there
    assert not list(Path.cwd().glob("threadkeep*"))
    started = run("settings", folder=tmp_path)
    assert f"THREADKEEP_DATA = {Settings.load({}).data}\n" in started.stdout, started
    assert environment({})["HOME"] == str(Path.home())
    for names in (os.environ, environment({})):
        assert not OF_CI.intersection(names)


def test_tests_pass_beside_a_server_settings_and_data_of_the_person_who_runs_them(
    tmp_path: Path, calls: list[str]
):
    theirs = {"HOME": str(tmp_path), "THREADKEEP_DATA": str(tmp_path / "data"), "OPENAI_API_KEY": "theirs"}
    theirs |= dict.fromkeys(OF_CI, "1")
    (tmp_path / "threadkeep.toml").write_text('gateway = "of the person"')
    for folder in (".threadkeep", "data"):
        (tmp_path / folder).write_text("no folder: a command that looks here fails")
    before = sorted(tmp_path.rglob("*"))
    tests = (
        f"{__file__}::{test_nothing_of_a_person_is_found.__name__}",
        str(ROOT / "tests/cli/test_attaching.py::test_pipe_can_attach_files_too"),
        str(ROOT / "tests/cli/test_cli.py::test_token_of_a_server_without_a_sign_in_is_printed"),
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"--rootdir={ROOT}", f"-c{ROOT / 'pyproject.toml'}", *tests],
        cwd=tmp_path,
        env=os.environ | theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "3 passed" in ended.stdout, ended.stdout + ended.stderr
    assert calls == []
    assert sorted(tmp_path.rglob("*")) == before
