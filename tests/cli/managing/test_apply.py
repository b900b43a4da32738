"""`threadkeep apply`: agents in files, as a team keeps them in git."""

import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.managing.test_managing import Place, place
from tests.http.direct import run_sql
from threadkeep.cli.managing.agent_files import read_all, written
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, NotReached

__all__ = ["place"]

SUPPORT = """
name = "Support"
description = "Answers questions about orders."
systemPrompt = \"\"\"
You help customers.
Be brief.
\"\"\"

[settings]
contextMessages = 40
starters = ["Where is my order?"]

[settings.mcpServers.shop]
url = "https://shop.example/mcp"
headers = { Authorization = { env = "SHOP_TOKEN" } }

[settings.tools]
"shop.*" = { access = "ask" }
"""
SECRET = "s3cret-token"
SERVER = 'name = "A"\n[settings.mcpServers.a]\nurl = "https://a.example"\n'


@pytest.fixture
def folder(place: Place) -> Path:
    """`agents`, with one agent."""
    folder = Path("agents")
    folder.mkdir()
    (folder / "support.toml").write_text(SUPPORT)
    return folder


def call(place: Place, method: str, path: str, **fields: Any) -> httpx.Response:
    """A request of the page."""
    token = (place.data / "token").read_text().strip()
    signed = {"Authorization": f"Bearer {token}"}
    return httpx.request(method, place.url + path, headers=signed, json=fields or None)


def agents(place: Place) -> dict[str, Any]:
    """All agents that can be changed, by name."""
    items = call(place, "GET", "/api/agents").json()["items"]
    return {it["name"]: it for it in items if "version" in it}


def apply(place: Place, *words: str, status: int = 0) -> str:
    return place.told("apply", "agents", *words, status=status, SHOP_TOKEN=SECRET)


def test_agent_in_a_file_is_created_changed_and_then_stays_as_it_is(place: Place, folder: Path):
    (folder / "a.toml").write_text('name = "Poet"')
    assert "settings.contextMessages: 20 → 40" in apply(place, "--dry-run")
    assert "Support" not in agents(place), "a dry run changes nothing"
    assert "Applied to 2 agents." in apply(place, "--yes")
    made = agents(place)
    assert made["Support"]["settings"]["contextMessages"] == 40
    assert "Nothing to change." in apply(place)
    assert agents(place) == made
    (folder / "support.toml").write_text(SUPPORT.replace("Be brief.", "Be kind.").replace("40", "20"))
    lines = apply(place, "--yes").splitlines()
    assert {"      - Be brief.", "      + Be kind.", "    settings.contextMessages: 40 → 20"} <= {*lines}
    assert agents(place)["Poet"] == made["Poet"]
    place.told("apply", "agents", "--yes", SHOP_TOKEN="s3cret-new")  # another secret is a difference, too
    assert "Nothing to change." in place.told("apply", "agents", SHOP_TOKEN="s3cret-new")


def test_rule_for_a_server_that_the_agent_does_not_have_is_told(place: Place, folder: Path):
    rules = '"tme.*" = { access = "ask" }\n"shop.*" = { access = "ask" }\n"promptx.*" = { access = "ask" }\n'
    (folder / "a.toml").write_text(
        f'name = "Poet"\n[settings.mcpServers.shop]\nurl = "https://shop.example/mcp"\n[settings.tools]\n{rules}'
    )
    told = apply(place, "--dry-run")
    assert "tme.* changes nothing, because the agent has no MCP server tme" in told
    assert told.count("changes nothing, because") == 1


def test_typo_names_its_line_and_the_key_that_was_meant_and_nothing_is_applied(place: Place, folder: Path):
    typo = folder / "typo.toml"
    typo.write_text('name = "Typo"\n\n[settings]\n# contxtMessages\ncontxtMessages = 3\n')
    (folder / "value.toml").write_text('name = "Value"\nsettings.contextMessages = -1\n')
    told = apply(place, "--yes", status=1)
    assert "agents/typo.toml:5: Unknown key `contxtMessages`. Did you mean `contextMessages`?" in told
    typo.unlink()
    told = apply(place, "--yes", status=1)
    assert "agents/value.toml:2: " in told, "what only the server refuses has its line, too"
    assert "Support" not in agents(place)


def test_all_faults_of_all_files_are_told_at_once(place: Place, folder: Path):
    (folder / "a.toml").write_text("""name = "A"
descripton = "x"
visibility = "open"

[settings]
contextMessages = -1
maxTokens = "many"

[settings.mcpServers.shop]
url = "ftp://shop.example"
headers = { Authorization = { env = "NOT_SET" } }

[settings.tools]
"shop.*" = { access = "aks" }
"time" = { access = "ask" }
""")
    (folder / "b.toml").write_text('name = ""\nmodel = 3\n')
    (folder / "c.toml").write_text("name = ")
    _, *told, last = apply(place, "--yes", status=1).splitlines()
    assert last == "Nothing was applied: 11 faults in the files."
    faults = {line.partition(": ")[0].partition("/")[2]: line.partition(": ")[2] for line in told}
    assert set(faults) == {
        *(f"a.toml:{line}" for line in (2, 3, 6, 7, 10, 11, 14, 15)), "b.toml:1", "b.toml:2", "c.toml",
    }  # fmt: skip
    assert "private" in faults["a.toml:3"], "what is allowed is said"
    assert "ask" in faults["a.toml:14"]
    assert "Support" not in agents(place)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "isn't valid TOML"),
        ("description = 'x'", "`name` is required"),
        ('name = "A"\nsystem_prompt = "x"', "x.toml:2: Unknown key `system_prompt`. Did you mean"),
        (SUPPORT, "describes the agent 'Support', too"),
        (f'{SERVER}headers.B = "s3cret"', '{ env = "VARIABLE" }'),
        (f'{SERVER}headers.B.env = "NOT_SET"', "x.toml:4: The environment variable NOT_SET isn't set."),
        (f"{SERVER}timeouts = 3", "x.toml:4: Unknown key `timeouts`. Did you mean `timeoutS`?"),
        ('name = "A"\nsettings = 3', "x.toml:2: `settings` is a table"),
    ],
)  # fmt: skip
def test_file_that_cannot_be_applied_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
):
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    paths = [tmp_path / "support.toml", tmp_path / "x.toml"]
    for path, content in zip(paths, (SUPPORT, text), strict=True):
        path.write_text(content)
    (fault,) = [it for file in read_all(paths) for it in file.faults]
    assert said in fault


def test_agent_that_somebody_changed_on_the_page_is_a_conflict_and_stays(place: Place, folder: Path):
    apply(place, "--yes")
    path = f"/api/agents/{agents(place)['Support']['id']}"
    call(place, "PATCH", path, description="Changed on the page.")
    (folder / "other.toml").write_text('name = "Other"')
    assert "--overwrite" in apply(place, "--yes", status=1)
    now = agents(place)
    assert (now["Support"]["description"], "Other" in now) == ("Changed on the page.", False)
    # Put into the file, it is no conflict any more, and the file can change again.
    file = folder / "support.toml"
    file.write_text(SUPPORT.replace("Answers questions about orders.", "Changed on the page."))
    assert "Applied to 1 agent." in apply(place, "--yes")
    file.write_text(SUPPORT)
    assert 'description: "Changed on the page." → "Answers' in apply(place, "--yes")
    call(place, "PATCH", path, description="Again.")
    apply(place, "--yes", "--overwrite")
    assert agents(place)["Support"]["description"] == "Answers questions about orders."


def test_change_between_the_difference_and_the_answer_is_not_overwritten(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    apply(place, "--yes")
    (folder / "support.toml").write_text(SUPPORT.replace("40", "30"))
    path = f"/api/agents/{agents(place)['Support']['id']}"

    def answer(*_: object, **__: object) -> bool:
        return call(place, "PATCH", path, description="Just now.").is_success

    monkeypatch.setattr("threadkeep.cli.managing.apply.confirm", answer)
    assert "not overwritten" in apply(place, status=1)
    assert agents(place)["Support"]["description"] == "Just now."


def test_run_that_was_interrupted_is_continued_by_the_next(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "a.toml").write_text('name = "First"')
    create = Client.create_agent

    async def create_one(self: Client, name: str, **fields: Any) -> Any:
        if name == "Support":
            raise NotReached("No response.")
        return await create(self, name, **fields)

    with monkeypatch.context() as broken:
        broken.setattr(Client, "create_agent", create_one)
        assert "No response." in apply(place, "--yes", status=1)
    assert {"First", "Support"} & {*agents(place)} == {"First"}
    assert "Applied to 1 agent." in apply(place, "--yes")
    assert "Nothing to change." in apply(place)


def test_too_many_agents_in_a_minute_are_no_fault_of_the_files(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    async def refused(*_: object, **__: object) -> Any:
        raise ClientError("Too many in a minute.", code="RATE_LIMITED", status=429)

    monkeypatch.setattr(Client, "preview_agent", refused)
    told = apply(place, "--yes", status=1)
    assert "Too many in a minute." in told
    assert "fault" not in told


def test_agent_that_another_run_has_just_created_is_not_created_again(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    create = Client.create_agent

    async def create_second(self: Client, name: str, **fields: Any) -> Any:
        first: dict[str, Any] = {**fields, **({"description": described} if described else {})}
        await create(self, name, **first)
        return await create(self, name, **fields)

    described = ""
    with monkeypatch.context() as raced:
        raced.setattr(Client, "create_agent", create_second)
        assert "Nothing to change." in apply(place, "--yes"), "the other run has done the same"
        made = agents(place)["Support"]
        assert made["version"] == made["appliedVersion"]
        call(place, "DELETE", f"/api/agents/{made['id']}")
        described = "Another file's."
        assert "not overwritten" in apply(place, "--yes", status=1)
    items = call(place, "GET", "/api/agents").json()["items"]
    assert [it["description"] for it in items if it["name"] == "Support"] == ["Another file's."]


def test_agent_of_somebody_else_stays_theirs(place: Place, folder: Path):
    """Also where an admin could change it: its owner would get the team's agent."""
    (folder / "support.toml").write_text(
        SUPPORT.replace("[settings]", 'visibility = "public"\n[settings]', 1)
    )
    apply(place, "--yes")
    database = f"sqlite:///{place.data / 'threadkeep.db'}"
    run_sql(database, "INSERT INTO tk_users (id, created_at) VALUES ('bob', 0)")
    run_sql(database, "UPDATE tk_agents SET owner_id = 'bob' WHERE name = 'Support'")
    theirs = agents(place)["Support"]
    (folder / "support.toml").write_text('name = "support"')
    told = apply(place, "--yes")
    assert "+ support" in told
    assert "bob already has an agent of this name" in told
    assert agents(place)["Support"] == theirs
    assert agents(place)["support"]["ownerId"] == "local"


def test_shown_file_is_applied_without_a_difference(place: Place, folder: Path):
    apply(place, "--yes")
    file = folder / "support.toml"
    file.write_text(place.told("agent", "show", "Support", "--toml"))
    assert "Nothing to change." in place.told("apply", "agents", SHOP_AUTHORIZATION=SECRET)
    file.write_text(place.told("agent", "show", "Assistant", "--toml"))
    assert "Nothing to change." in place.told("apply", "agents")


def test_agent_of_another_server_is_applied_shown_and_taken_back(place: Place, folder: Path):
    file = folder / "support.toml"
    engine = '[engine]\nkind = "ag-ui"\nurl = "https://agents.example/run"\nrepeat = true\n'
    headers = '[engine.headers]\nX-Key = { env = "ENGINE_X_KEY" }\n'
    file.write_text(f'name = "Support"\n\n{engine}\n{headers}')
    assert "ENGINE_X_KEY isn't set" in place.told("apply", "agents", "--yes", status=1)
    assert SECRET not in place.told("apply", "agents", "--yes", ENGINE_X_KEY=SECRET)
    assert agents(place)["Support"]["engine"]["headers"].keys() == {"X-Key"}
    assert "Nothing to change." in place.told("apply", "agents", ENGINE_X_KEY=SECRET)
    assert place.told("agent", "show", "Support", "--toml") == file.read_text()
    place.told("agent", "change", "Support", "--ag-ui", "https://other.example/run", "--no-repeat")
    assert agents(place)["Support"]["engine"] | {"headers": {}} == agents(place)["Support"]["engine"]
    file.write_text('name = "Support"\n')
    place.told("apply", "agents", "--yes", "--overwrite")
    assert agents(place)["Support"]["engine"] == {"kind": "config"}


@pytest.mark.parametrize(
    "text",
    ['a "quoted" line', 'two\nlines"', '"""\n"""" \\" \x7f\r\n\ttab', "\n\nends\n", "back\\slash\nü"],
)
def test_text_in_a_written_file_is_the_same_when_it_is_read(text: str):
    values = [(("systemPrompt",), text), (("settings", "tools", "a.*", "access"), "ask")]
    assert tomllib.loads(written("N", values)) == {
        "name": "N",
        "systemPrompt": text,
        "settings": {"tools": {"a.*": {"access": "ask"}}},
    }
