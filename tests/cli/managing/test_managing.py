"""`threadkeep agent`, `mcp` and `model`, as people use them: against a server, over its API."""

import json
import signal
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.talking import talking_aside
from threadkeep.cli import main
from threadkeep.testing import ScriptedModel, scripted_settings


@dataclass(frozen=True)
class Place:
    """A server that requires its token, and a shell in the folder where it runs."""

    url: str
    data: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def told(self, *words: str, status: int = 0, **variables: str) -> str:
        """What a command prints: its output, or why it failed."""
        with self.monkeypatch.context() as shell:
            for name, value in variables.items():
                shell.setenv(name, value)
            named = 1 if words[0] == "apply" else 2
            where = ("--url", self.url, "--data", str(self.data))
            command = [*words[:named], *where, *words[named:]]
            assert main(command) == status, self.capsys.readouterr().err
        out, err = self.capsys.readouterr()
        assert "s3cret" not in out + err
        return out if status == 0 else err


@pytest.fixture
def place(
    model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Generator[Place]:
    """One for each test."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    settings = scripted_settings(
        model, data=data, require_token=True, mcp_allow_private=True, mcp_allowed_commands=("python3",)
    )
    with talking_aside(settings) as server:
        yield Place(server.url, data, monkeypatch, capsys)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def open_place(
    model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Generator[Place]:
    """One whose server doesn't require its token yet."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    with talking_aside(scripted_settings(model, data=data, mcp_allowed_commands=("python3",))) as server:
        yield Place(server.url, data, monkeypatch, capsys)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_agent_is_created_shown_changed_and_deleted(place: Place):
    Path("prompt.md").write_text("You are a pirate.")
    made = place.told(
        "agent", "create", "Pirate", "--system-prompt", "prompt.md", "--set", "contextMessages=40"
    )
    assert made.startswith("Created Pirate (")
    shown = json.loads(place.told("agent", "show", "pirate", "--json"))
    assert (shown["systemPrompt"], shown["settings"]["contextMessages"]) == ("You are a pirate.", 40)
    place.told("agent", "change", shown["id"], "--set", "tools.web.*.access=ask", "--description", "Arr.")
    text = place.told("agent", "show", "Pirate").splitlines()
    assert 'settings.tools.web.*.access = "ask"' in text
    assert 'description = "Arr."' in text
    assert "Pirate" in place.told("agent", "list")
    assert "--yes" in place.told("agent", "delete", "Pirate", status=1)
    place.told("agent", "delete", "Pirate", "--yes")
    assert "Pirate" not in place.told("agent", "list")


def test_server_is_added_with_a_secret_from_the_environment_tested_and_removed(place: Place):
    place.told("agent", "create", "Searcher")
    web = ("mcp", "add", "Searcher", "web", "http://127.0.0.1:9/mcp", "--header", "Authorization=WEB_TOKEN")
    assert "WEB_TOKEN" in place.told(*web, status=1)
    clock = ("mcp", "add", "Searcher", "clock", "--env", "CLOCK=CLOCK_KEY", "--")
    words = (*clock, "python3", "-c", "print()")
    added = place.told(*words, status=1, CLOCK_KEY="s3cret-value")  # it isn't a server
    assert "Added clock to Searcher." in added
    names = [it["name"] for it in json.loads(place.told("mcp", "list", "Searcher", "--json"))]
    assert "clock" in names
    assert "--replace" in place.told("mcp", "add", "Searcher", "clock", "--", "python3", status=1)
    place.told("mcp", "remove", "Searcher", "clock")
    assert "no server 'clock'" in place.told("mcp", "remove", "Searcher", "clock", status=1)


def test_rule_for_a_server_that_the_agent_does_not_have_is_told_wherever_one_sets_or_looks(
    place: Place, capsys: pytest.CaptureFixture[str]
):
    told = "Searcher: settings.tools: tme.* changes nothing, because the agent has no MCP server tme"
    create = ("agent", "create", "Searcher", "--set", "tools.tme.*.access=ask")
    where = ("--url", place.url, "--data", str(place.data))
    for words in (
        create,
        ("agent", "change", "Searcher", "--set", "tools.charts.*.access=ask"),  # a server of ours
        ("agent", "show", "Searcher"),
        ("agent", "show", "Searcher", "--json"),
        ("agent", "list"),
        ("mcp", "list", "Searcher"),
    ):
        assert main([*words, *where]) == 0
        assert capsys.readouterr().err.splitlines() == [told], words
    add = ("mcp", "add", "Searcher", "tme", "http://127.0.0.1:9/mcp", *where)
    assert main([*add]) == 1  # nobody answers there
    assert told not in capsys.readouterr().err
    assert main(["mcp", "remove", "Searcher", "tme", *where]) == 0
    assert told in capsys.readouterr().err


def test_first_program_locks_nobody_out_unasked(open_place: Place):
    add = ("mcp", "add", "Assistant", "clock")
    program = ("--", "python3", "-c", "print()")
    refused = open_place.told(*add, *program, status=1)
    assert "requires its token for every request" in refused
    assert "--yes" in refused
    assert httpx2.get(f"{open_place.url}/api/me").status_code == 200
    assert "Added clock to Assistant." in open_place.told(*add, "--yes", *program, status=1)  # no server
    assert httpx2.get(f"{open_place.url}/api/me").status_code == 401
    made = open_place.told("key", "create", "shop", "--scope", "chat")  # the folder's token lets it in
    assert made.startswith("tk_")


def test_account_with_a_provider_is_connected_tested_listed_and_removed(place: Place):
    connect = ("model", "connect", "work", "--kind", "openai", "--address", "http://127.0.0.1:9/v1")
    words = (*connect, "--key-env", "WORK_KEY", "--model", "large")
    assert "Saved work." in place.told(*words, status=1, WORK_KEY="sk-s3cret")  # nobody answers there
    accounts = json.loads(place.told("model", "gateways", "--json"))
    assert "work" in [it["name"] for it in accounts]
    assert "work/large" in place.told("model", "list")
    priced = ("model", "connect", "other", *connect[3:], "--key-env", "WORK_KEY", "--price", "small=2.50,10")
    place.told(*priced, status=1, WORK_KEY="sk-s3cret")
    (row,) = [it for it in place.told("model", "list").splitlines() if it.startswith("other/small")]
    assert {"2.50", "10.00"} <= {*row.split()}
    place.told("model", "disconnect", "work")
    assert "work" not in [it["name"] for it in json.loads(place.told("model", "gateways", "--json"))]


def test_mistakes_are_told_in_one_line(place: Place):
    for arguments, said in (
        (("agent", "show", "Nobody"), "Agent 'Nobody' not found."),
        (("agent", "change", "Assistant"), "Say what to change"),
        (("agent", "create", "X", "--set", "contextMesages=4"), "contextMesages"),
        (("agent", "create", "X", "--set", "maxTokens=many"), "`settings.maxTokens`: Expected"),
        (("mcp", "test", "Assistant", "nope"), "`threadkeep mcp list AGENT` lists them."),
        (("mcp", "add", "Assistant", "web", "https://a.example", "--env", "A"), "--header"),
        (("model", "test", "nowhere"), "`threadkeep model gateways` lists them."),
    ):
        (line,) = place.told(*arguments, status=1).splitlines()
        assert said in line
