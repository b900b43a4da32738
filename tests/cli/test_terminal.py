"""`threadkeep chat`, as people use it: in a terminal, and in a pipe."""

import asyncio
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import SECRET
from tests.serving import environment, run, serving
from tests.talking import Talk, talking_aside
from threadkeep.cli import main
from threadkeep.cli.terminal import DEMONSTRATION, Screen
from threadkeep.client.blocking import LoopThread
from threadkeep.domain.events import (
    Done,
    Failed,
    IterationStart,
    Notice,
    Text,
    Thought,
    ToolCalled,
    ToolResultStored,
    TurnStart,
)
from threadkeep.domain.message import Usage
from threadkeep.ports.gateway import DEMONSTRATION_MODEL
from threadkeep.testing import (
    Gate,
    Outcome,
    Pause,
    Say,
    ScriptedModel,
    Status,
    Think,
    UseTool,
    Wait,
    closed_port,
    scripted_settings,
)
from threadkeep.testing.waiting import PATIENCE_S

WAIT_S = PATIENCE_S
TERMINAL = environment({}) | {"TERM": "xterm"}


def settings_for(model: ScriptedModel, **more: str) -> dict[str, str]:
    return {
        "gateway": "openai",
        "gateway_url": model.url,
        "model": "scripted",
        **more,
    }


@pytest.fixture
def server(tmp_path: Path, model: ScriptedModel) -> Generator[Talk]:
    with talking_aside(scripted_settings(model, data=tmp_path / "data")) as server:
        yield server


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "threadkeep", "chat", *arguments]


class Person:
    """Somebody at a terminal in which `threadkeep chat` runs."""

    def __init__(self, folder: Path, *arguments: str, columns: int = 0) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        self.process = subprocess.Popen(
            command(*arguments), cwd=folder, env=TERMINAL, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        self._seen = ""

    def sees(self, text: str) -> str:
        """Waits until this is on the screen; all that came until then."""
        assert self.has_seen(text), f"{text!r} is not in {self._seen!r}"
        before, _, self._seen = self._seen.partition(text)
        return before + text

    def has_seen(self, text: str, within_s: float = WAIT_S) -> bool:
        """Whether this comes on the screen in time."""
        ends_at = time.monotonic() + within_s
        while text not in self._seen and time.monotonic() < ends_at:
            if select.select([self._master], [], [], 0.1)[0]:
                self._seen += os.read(self._master, 65536).decode()
        return text in self._seen

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def presses_ctrl_c(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def leaves(self) -> int:
        """The exit code, once the program has ended."""
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@contextmanager
def person(folder: Path, *arguments: str, columns: int = 0) -> Generator[Person]:
    somebody = Person(folder, *arguments, columns=columns)
    try:
        yield somebody
    finally:
        somebody.close()


def piped(
    folder: Path, lines: str, *arguments: str, settings: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(settings or {}),
        input=lines,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


def main_messages(url: str) -> list[dict[str, Any]]:
    return httpx.get(f"{url}/api/chat/messages", trust_env=False).json()["items"]


async def outcome_of(model: ScriptedModel) -> Outcome:
    return await model.requests[0].until_over()


def test_reply_comes_as_it_is_said_with_thoughts_and_tools_dimmed(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    gate = Gate()
    model.script([Think("Hm."), Say("Let me see."), UseTool("add", {"a": 1})])
    model.script([Say("Be"), Wait(gate), Say("cause.")])
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("Chatting with Assistant.")
        somebody.sees("> ")
        somebody.types("Why?\n")
        shown = somebody.sees("Be")
        assert "\x1b[2mHm.\x1b[0m\r\nLet me see.\r\n" in shown
        assert '\x1b[2m→ add {"a": 1}\x1b[0m\r\n' in shown
        assert "\x1b[2m← add: Tool 'add' not found.\x1b[0m\r\n" in shown
        gate.open()
        somebody.sees("cause.\r\n")
        somebody.sees("> ")
        somebody.types("\x04")
        assert somebody.leaves() == 0


def test_terminal_gets_lines_that_break_between_words(server: Talk, model: ScriptedModel, tmp_path: Path):
    gate = Gate()
    model.script([Say("Gravity pulls all things tog"), Wait(gate), Say("ether, 一切。")])
    with person(tmp_path, "--url", server.url, columns=30) as somebody:
        assert "/help for commands, or press \r\nCtrl-D to leave." in somebody.sees("> ")
        somebody.types("Why?\n")
        somebody.sees("Gravity pulls all things tog")
        gate.open()
        somebody.sees("\x1b[3D\x1b[K\r\ntogether, 一切。\r\n")


def test_pasted_lines_are_one_message(server: Talk, model: ScriptedModel, tmp_path: Path):
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("\x1b[200~one\ntwo\x1b[201~\n")
        somebody.sees("OK.\r\n")
    assert [it["content"] for it in main_messages(server.url)] == ["one\ntwo", "OK."]


def test_line_that_is_typed_during_a_reply_is_queued_and_gets_its_own_after_it(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    gate = Gate()
    model.script([Say("half"), Wait(gate), Say(" and half")])
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("Why?\n")
        somebody.sees("half")
        somebody.types("And then?\n")
        assert "And then?" not in somebody.sees("(queued)")
        gate.open()
        somebody.sees("and half\r\n")
        somebody.sees("> And then?")
        somebody.sees("OK.\r\n")
        somebody.sees("> ")
    assert [it["content"] for it in main_messages(server.url)][2:] == ["And then?", "OK."]


def test_line_with_an_exclamation_mark_steers_the_reply_and_is_sent_after_it_where_it_comes_too_late(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    gate = Gate()
    model.script([Say("half"), Wait(gate), Say(" and half")])
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("Why?\n")
        somebody.sees("half")
        somebody.types("!No, the other.\n")
        somebody.sees("(steered)")
        gate.open()
        somebody.sees("> No, the other.")
        somebody.sees("OK.\r\n")
    assert [it["content"] for it in main_messages(server.url)][2:] == ["No, the other.", "OK."]


def test_stopping_a_reply_holds_what_is_queued_until_the_next_message(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    model.script([Say("half"), Wait(Gate())])
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("Why?\n")
        somebody.sees("half")
        somebody.types("2?\n")
        somebody.sees("(queued)")
        somebody.presses_ctrl_c()
        somebody.sees("(stopped; the partial answer is saved)")
        somebody.sees("(1 queued; sent before your next message)")
        somebody.sees("> ")
        somebody.types("3?\n")
        for asked in ("> 2?", "> 3?"):
            somebody.sees(asked)
            somebody.sees("OK.")
    assert [it["content"] for it in main_messages(server.url)][2:] == ["2?", "OK.", "3?", "OK."]


def test_ctrl_c_stops_the_reply_and_keeps_it_and_a_second_one_leaves(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    model.script([Say("half an ans"), Wait(Gate()), Say("wer")])
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("Why?\n")
        somebody.sees("half an ans")
        somebody.presses_ctrl_c()
        somebody.sees("(stopped; the partial answer is saved)")
        somebody.sees("> ")
        asked, reply = main_messages(server.url)
        assert asked["content"] == "Why?"
        assert (reply["content"], reply["status"]) == ("half an ans", "CANCELLED")
        assert asyncio.run(outcome_of(model)) == "disconnected"
        somebody.types("And now?\n")
        somebody.sees("OK.\r\n")
        somebody.sees("> ")
        while somebody.process.poll() is None:  # Python misses one that comes just before it waits for a key
            somebody.presses_ctrl_c()
            time.sleep(0.3)
        assert somebody.leaves() == 0
    assert [it["content"] for it in main_messages(server.url)[2:]] == ["And now?", "OK."]


def test_impatient_person_leaves_while_the_reply_is_being_stopped(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    model.script([Say("half"), Wait(Gate())])
    with person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("Why?\n")
        somebody.sees("half")
        while somebody.process.poll() is None:
            somebody.presses_ctrl_c()
            time.sleep(0.3)
        assert somebody.leaves() == 0
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        conversation = client.get("/api/conversations").json()["items"][0]
        client.post(f"/api/conversations/{conversation['id']}/abort")
    assert main_messages(server.url)[1]["content"] == "half"


class Line:
    """The way to a server, which can be cut."""

    def __init__(self, url: str) -> None:
        self._port = int(url.rpartition(":")[2])
        self._ends: set[asyncio.StreamWriter] = set()
        self._loop = LoopThread()
        self._server = self._loop.wait(asyncio.start_server(self._carry, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Breaks every connection; new ones can be made."""
        self._loop.wait(self._cut())

    def close(self) -> None:
        """Takes no more connections."""
        self._server.close()
        self.cut()
        self._loop.close()

    async def _cut(self) -> None:
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends |= {writer, to_server}
        await asyncio.gather(_copy(reader, to_server), _copy(from_server, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


def test_cut_connection_is_taken_up_where_it_broke(server: Talk, model: ScriptedModel, tmp_path: Path):
    gate = Gate()
    model.script([Say("One, "), Wait(gate), Say("two.")])
    with closing(Line(server.url)) as line, person(tmp_path, "--url", line.url) as somebody:
        somebody.sees("> ")
        somebody.types("Count\n")
        somebody.sees("One, ")
        line.cut()
        gate.open()
        assert somebody.sees("two.") == "two."  # nothing twice, and no word of the cut
        somebody.sees("> ")
        somebody.types("/quit\n")
        assert somebody.leaves() == 0
    assert [it["content"] for it in main_messages(server.url)] == ["Count", "One, two."]


def test_pipe_gets_plain_text_and_no_prompt(server: Talk, model: ScriptedModel, tmp_path: Path):
    model.script([Think("Hm."), Say("One\x1b[31m.\x07"), Pause(0.1), Say("\n因为")])
    done = piped(tmp_path, "Why?\n\n/quit\nnever\n", "--url", server.url)
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.startswith("Chatting with Assistant.")
    assert lines == ["Hm.", "One[31m.", "因为"]
    assert done.stderr == ""


def test_new_begins_another_conversation_and_help_tells_of_it(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    done = piped(tmp_path, "One\n/help\n/new\nTwo\n/dance\n", "--url", server.url)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"/new +start", done.stdout)
    assert "(new conversation)" in done.stdout
    assert "Unknown command /dance." in done.stdout
    assert [it["content"] for it in main_messages(server.url)] == ["One", "OK."]
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        assert len(client.get("/api/conversations").json()["items"]) == 2


def test_earlier_conversations_are_listed_opened_and_shown_where_they_go_on(
    server: Talk, model: ScriptedModel, tmp_path: Path
):
    model.script([Say("Because.")])
    piped(tmp_path, "Why?\n/new\nSecond\n", "--url", server.url)
    with person(tmp_path, "--url", server.url) as somebody:
        shown = somebody.sees("> Why?")
        assert "Continuing “" in shown
        somebody.sees("Because.")
        somebody.sees("> ")
        somebody.types("/list\n")
        shown = somebody.sees("(/open N goes on with one of them)")
        assert "   1  " in shown
        assert "*  2  " in shown
        somebody.types("/open 7\n")
        somebody.sees("by its number")
        somebody.types("/open 1\n")
        somebody.sees("> Second")
        somebody.sees("OK.")
        somebody.sees("> ")
        somebody.types("Third\n")
        somebody.sees("OK.")
        somebody.sees("> ")
        somebody.types("/quit\n")
        assert somebody.leaves() == 0
    assert [it["content"] for it in main_messages(server.url)] == ["Why?", "Because."]


def test_agent_is_found_by_its_name(server: Talk, model: ScriptedModel, tmp_path: Path):
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.post("/api/agents", json={"name": "法律 Advisor", "systemPrompt": "Be brief."})
    done = piped(tmp_path, "Why?\n", "--url", server.url, "--agent", "法律 advisor")
    assert "Chatting with 法律 Advisor." in done.stdout
    assert model.requests[0].body["messages"][0]["content"].startswith("Be brief.")
    nobody = piped(tmp_path, "Why?\n", "--url", server.url, "--agent", "Nobody")
    assert nobody.returncode == 1
    assert "Agent 'Nobody' not found" in nobody.stderr
    assert "法律 Advisor" in nobody.stderr


def test_failing_model_is_told_and_the_talk_goes_on(server: Talk, model: ScriptedModel, tmp_path: Path):
    model.script([Status(401, "no")])
    done = piped(tmp_path, "Why?\nAgain\n", "--url", server.url)
    assert done.returncode == 0
    assert "Error: " in done.stdout
    assert done.stdout.splitlines()[-1] == "OK."


def test_without_a_server_the_data_folder_is_served_for_the_talk_and_that_is_said(
    model: ScriptedModel, tmp_path: Path
):
    with closed_port() as url:
        own = settings_for(model, port=url.rpartition(":")[2])
        done = piped(tmp_path, "Why?\n", "--data", "data", settings=own)
        assert done.returncode == 0, done.stderr
        assert done.stderr == f"No server at {url}. Starting with a new data folder, ./data\n"
        assert done.stdout.splitlines()[-1] == "OK."
        again = piped(tmp_path, "", "--data", "data", "--agent", "Assistant", settings=own)
        assert again.returncode == 0
        assert again.stderr == f"No server at {url}. Using the data folder ./data\n"
        with serving(tmp_path, **settings_for(model)) as server:
            assert [it["content"] for it in main_messages(server.url)] == ["Why?", "OK."]
            busy = piped(tmp_path, "Why?\n", "--data", "data", settings=own)
            assert busy.returncode == 1
            assert busy.stderr.startswith("threadkeep: ")
            assert "Traceback" not in busy.stderr


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8710", "http://", "http://127.0.0.1:99999", "ftp://127.0.0.1"]
)
def test_what_is_no_address_is_told_in_one_line(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]):
    assert main(["chat", "--data", str(tmp_path), "--url", url]) == 1
    assert (
        capsys.readouterr().err
        == f"threadkeep: {url!r} is not a valid address. Use a URL such as http://127.0.0.1:8710.\n"
    )


def test_wrong_path_of_a_server_is_told_as_such(server: Talk, tmp_path: Path):
    done = piped(tmp_path, "", "--url", f"{server.url}/chat")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "not under this path" in done.stderr


def test_server_that_is_away_or_wants_a_token_is_told_in_one_line(model: ScriptedModel, tmp_path: Path):
    with closed_port() as url:
        away = piped(tmp_path, "Why?\n", "--url", url)
    assert (away.returncode, away.stderr.count("\n")) == (1, 1)
    assert "No response from" in away.stderr
    with talking_aside(scripted_settings(model, data=tmp_path / "data", jwt_secret=SECRET)) as server:
        stranger = piped(tmp_path, "Why?\n", "--url", server.url)
        assert (stranger.returncode, stranger.stderr.count("\n")) == (1, 1)
        assert "--token" in stranger.stderr
        token = run("token", "--user", "alice", folder=tmp_path, jwt_secret=SECRET).stdout.strip()
        alice = piped(tmp_path, "Why?\n", "--url", server.url, "--token", token)
        assert alice.stdout.splitlines()[-1] == "OK.", alice.stderr


def test_demonstration_model_is_announced_once():
    out = io.StringIO()
    screen = Screen(out)
    for _ in range(2):
        screen.show(TurnStart("c", "u", "m", DEMONSTRATION_MODEL))
        screen.show(Text("Hello"))
        screen.show(Done("COMPLETED", "m", Usage(1, 1), "end_turn"))
    assert out.getvalue() == f"{DEMONSTRATION}\nHello\nHello\n"
    assert "small demonstration model" in DEMONSTRATION


def test_notices_do_not_disturb():
    out = io.StringIO()
    screen = Screen(out)
    screen.show(Text("One"))
    screen.show(IterationStart(2))
    screen.show(Notice("X", "web is away"))
    screen.show(Text("two"))
    screen.show(Failed("X", "broken"))
    assert out.getvalue() == "One\n\n! web is away\ntwo\nError: broken\n"


def test_text_thoughts_and_tools_come_in_order_with_a_blank_line_between_calls():
    screen = Screen(out := io.StringIO())
    for event in (
        IterationStart(1),
        Thought("Hm."),
        Text("Numbers"),
        Text(" first."),
        ToolCalled("1", "add", "", {"a": 1}),
        ToolResultStored("1", "add", "ok", 3),
        IterationStart(2),
        Text("Now I check."),
        IterationStart(3),
        Thought("So."),
        Text("Revenue grew."),
        Done("COMPLETED", "m", Usage(1, 1), "end_turn"),
        IterationStart(1),
        Text("Next turn."),
    ):
        screen.show(event)
    assert out.getvalue().split("\n") == [
        "Hm.",
        "Numbers first.",
        '→ add {"a": 1}',
        "← add: ok",
        "",
        "Now I check.",
        "",
        "So.",
        "Revenue grew.",
        "Next turn.",
    ]


def test_terminal_shows_that_the_model_is_asked_until_it_replies(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen, waiting = Screen(out := Terminal()), "\x1b[2m…\x1b[0m\r\x1b[K"
    screen.show(IterationStart(1))
    screen.show(Text("One"))
    screen.show(IterationStart(2))
    screen.show(Text("two"))
    screen.show(Done("COMPLETED", "m", Usage(1, 1), "end_turn"))
    assert out.getvalue() == f"{waiting}One\n{waiting}\ntwo\n"


def test_person_chooses_the_model_that_answers(tmp_path: Path, model: ScriptedModel):
    model.otherwise = [Say("OK.")]
    settings = tmp_path / "threadkeep.toml"
    settings.write_text(
        f"""[gateways.work]
        kind = "openai"
        url = "{model.url}"
        models = [{{name = "fast", price = {{input = "0.5", output = 2}}}}]
        """
    )
    own = settings_for(model) | {"THREADKEEP_CONFIG": str(settings)}
    with serving(tmp_path, **settings_for(model), config=str(settings)) as server:
        with httpx.Client(base_url=server.url) as client:
            agent = {"name": "Chooser", "settings": {"models": ["*"]}}
            assert client.post("/api/agents", json=agent).status_code == 201
        with person(tmp_path, "--url", server.url, "--agent", "Chooser", "--model", "fast") as somebody:
            somebody.sees("(work/fast answers)")
            somebody.sees("> ")
            somebody.types("/model\n")
            somebody.sees("  default/scripted")
            somebody.sees("* work/fast  (0.50 in, 2.00 out, per million tokens)")
            somebody.types("/model slow\n")
            somebody.sees("doesn't offer the model slow")
            somebody.types("Hello\n")
            somebody.sees("OK.")
    assert own
    assert model.requests[0].body["model"] == "fast"
