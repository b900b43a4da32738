"""`threadkeep doctor`: tells what is wrong and what to do, changes nothing, shows no secret."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from msgspec.structs import replace

from tests.conftest import TEMPLATE, secret_key_for
from tests.making import ALICE, NOW, keep_agent
from tests.pooling import NEEDS_PGBOUNCER, PgBouncer
from tests.postgres import Postgres
from tests.serving import SOURCE, Server, environment
from threadkeep import Settings
from threadkeep.cli import main
from threadkeep.doctor import examine, installed
from threadkeep.doctor.finding import Finding
from threadkeep.domain.agent import AgentSettings, AuditEntry
from threadkeep.domain.ids import InvitationId, KeyId, UserId, new_uuid
from threadkeep.domain.key import Key, Scope
from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel
from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.session import Invitation
from threadkeep.domain.times import LATEST_MS
from threadkeep.domain.tool_rules import ToolAccess, ToolRule
from threadkeep.domain.user import UserRole
from threadkeep.extras import adding
from threadkeep.mcp.processes.sandbox import sandbox_kinds
from threadkeep.ports.gateways import SavedGateway
from threadkeep.settings.models import GatewayTable, ModelTable, PriceTable
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.secrets import SecretBox
from threadkeep.storage.store import open_database, store_on
from threadkeep.testing import Say, ScriptedModel, Status, closed_port

MARK = "xyzzy-secret"


async def found(settings: Settings, **environment: str) -> dict[str, list[Finding]]:
    """What the doctor finds, by what was looked at."""
    by_check: dict[str, list[Finding]] = {}
    async for finding in examine(settings, environment):
        by_check.setdefault(finding.check, []).append(finding)
    assert MARK not in repr(by_check)
    return by_check


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address where nobody listens."""
    with closed_port() as url:
        yield url


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings.load({}, data=tmp_path / "data", **given)


def state(folder: Path) -> dict[str, str]:
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_beside_a_running_server_everything_is_looked_at_and_nothing_changed(
    tmp_path: Path, model: ScriptedModel, nowhere: str, monkeypatch: pytest.MonkeyPatch
):
    # Programs that servers may be are found beside the Python that runs them.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    given = {
        "gateway": "openai",
        "gateway_url": model.url,
        "gateway_api_key": MARK,
        "model": "scripted",
        "mcp_allow_private": "true",
        "mcp_allowed_commands": "mcp-server-time",
    }
    servers = {
        "clock": {"command": "mcp-server-time", "env": {"API_KEY": MARK}},
        "away": {"url": f"{nowhere}/mcp", "headers": {"Authorization": MARK}},
        "off": {"url": f"{nowhere}/mcp", "disabled": True},
    }
    with Server(tmp_path, **given) as server:
        with server.client() as client:
            made = client.post("/api/agents", json={"name": "Advisor", "settings": {"mcpServers": servers}})
            assert made.status_code == 201, made.text
        beside = asyncio.run(found(settings(tmp_path, **given), THREADKEEP_PROT="1"))
        assert server.stop() == 0
    (mistyped,) = beside["settings"]
    assert (mistyped.verdict, mistyped.advice) == ("warning", "Did you mean THREADKEEP_PORT?")
    assert [it.verdict for it in beside["data folder"]] == ["ok"]
    assert "a server is using it" in beside["data folder"][0].message
    assert "reachable, writable and up to date" in beside["database"][0].message
    assert "all 2 stored secrets" in beside["secret key"][0].message
    assert [it.message for it in beside["model"]] == ["scripted answers."]
    away, clock = sorted(beside["mcp servers"], key=lambda it: it.message)
    assert (clock.verdict, clock.message) == ("ok", "clock of Advisor: 2 tools.")
    assert (away.verdict, "away of Advisor: " in away.message, bool(away.advice)) == ("warning", True, True)
    # Where no server runs, not even a log beside the database is made.
    before = state(tmp_path / "data")
    again = asyncio.run(found(settings(tmp_path, **given)))
    assert "no server is using it" in again["data folder"][0].message
    assert state(tmp_path / "data") == before
    # A key that is gone is missed.
    (tmp_path / "data" / "secret.key").unlink()
    lost = asyncio.run(found(settings(tmp_path, **given)))
    assert [(it.verdict, it.message[:6]) for it in lost["secret key"]] == [("problem", "2 of 2")]


@pytest.mark.parametrize(
    ("status", "told", "advice"),
    [
        (401, "rejected the API key", "GATEWAY_API_KEY"),
        (404, "(404)", "THREADKEEP_MODEL (scripted)"),
        (429, "is busy (429)", "limits"),
        (0, "Couldn't connect", "127.0.0.1 can be reached"),
    ],
)
async def test_model_that_does_not_reply_is_explained(
    tmp_path: Path, model: ScriptedModel, nowhere: str, status: int, told: str, advice: str
):
    if status:
        model.script([Status(status)])
    url = model.url if status else nowhere
    given = settings(tmp_path, gateway="openai", gateway_url=url, gateway_api_key=MARK, model="scripted")
    (finding,) = (await found(given))["model"]
    assert (finding.verdict, told in finding.message) == ("problem", True), finding
    assert advice in (finding.advice or "")


async def test_model_that_replies_is_asked_once_and_little(tmp_path: Path, model: ScriptedModel):
    model.script([Say("OK.")])
    given = settings(tmp_path, gateway="anthropic", gateway_url=model.url, gateway_api_key=MARK, model="m")
    assert [it.verdict for it in (await found(given))["model"]] == ["ok"]
    (asked,) = model.requests
    assert asked.body["max_tokens"] <= 16


async def test_each_gateway_is_asked_those_of_admins_too(
    tmp_path: Path, database_url: str, model: ScriptedModel, nowhere: str
):
    key = secret_key_for(database_url) or "a-key-for-secrets-that-is-long-enough"
    given = settings(tmp_path, gateway="openai", database_url=database_url, secret_key=key)
    database = await open_database(database_url)
    store = await store_on(database, SecretBox([key]))
    for name, url in (("good", f"{model.url}/v1"), ("gone", nowhere), ("denied", "http://169.254.169.254")):
        config = GatewayConfig(
            name=name, kind=GatewayKind.OPENAI, url=url, api_key=Secret(MARK), models=(ListedModel(name="m"),)
        )
        saved = SavedGateway(config=config, version=1, created_at=NOW, updated_at=NOW)
        entry = AuditEntry(new_uuid(), NOW, ALICE, "create_gateway", None, {})
        await store.gateways.add(saved, entry, most=9)
    await database.close()
    by_name = {it.message.partition(":")[0]: it for it in (await found(given))["model"]}
    assert {name: it.verdict for name, it in by_name.items()} == {
        "good": "ok",
        "gone": "problem",
        "denied": "problem",
    }
    assert "isn't allowed" in by_name["denied"].message
    assert "page" in (by_name["gone"].advice or "")
    lost = settings(tmp_path, gateway="openai", database_url=database_url, secret_key="another-key-" * 4)
    looked = await found(lost)
    assert all("can't be decrypted" in it.message for it in looked["model"])
    assert [it.message for it in looked["secret key"]] == ["3 of 3 stored secrets can't be decrypted."]


async def test_model_that_a_budget_refuses_is_named(tmp_path: Path, nowhere: str):
    priced = PriceTable(input="1", output="2")
    work = GatewayTable(
        kind="openai",
        url=nowhere,
        models=("small", ModelTable(name="large", price=priced)),
        default_model="large",
    )
    assert "budgets" not in await found(settings(tmp_path, gateways={"work": work}))
    with_budget = settings(tmp_path, gateways={"work": work}, user_budget_day="2.50")
    (told,) = (await found(with_budget))["budgets"]
    assert told.verdict == "problem"
    assert told.message.endswith("without a price: work/small.")
    assert "--price" in (told.advice or "")
    all_priced = replace(work, models=work.models[1:])
    (told,) = (await found(settings(tmp_path, gateways={"work": all_priced}, user_budget_day="1")))["budgets"]
    assert told.verdict == "ok"


async def test_budgets_of_agents_and_keys_are_told_with_rules_and_open_invitations(
    tmp_path: Path, nowhere: str, database_url: str
):
    work = GatewayTable(kind="openai", url=nowhere, models=("small",))
    given = settings(
        tmp_path, gateways={"work": work}, database_url=database_url, secret_key=secret_key_for(database_url)
    )
    database = await open_database(database_url)
    store = await store_on(database, SecretBox([]))
    rules = {"tme.*": ToolRule(access=ToolAccess.ASK), "charts.*": ToolRule(access=ToolAccess.ASK)}
    for name, of in (
        ("Spender", AgentSettings(budget_month="5")),
        ("Ruled", AgentSettings(tools=rules)),
        ("Plain", AgentSettings()),
    ):
        await keep_agent(store, name=name, settings=of)
    for name, budget, expires_at in (("CI", 5, None), ("free", None, None), ("over", 5, 1)):
        key = Key(
            id=KeyId(new_uuid()),
            user_id=ALICE,
            name=name,
            prefix="tk_",
            scopes=(Scope.CHAT,),
            agents=None,
            is_admin=False,
            may_run_programs=False,
            budget_month=budget,
            created_at=NOW,
            expires_at=expires_at,
        )
        assert await store.keys.add(key, name, AuditEntry(new_uuid(), NOW, ALICE, "key", None, {}), most=9)
    ann = UserId("invited:ann")
    invitation = Invitation(
        id=InvitationId(new_uuid()),
        user_id=ann,
        role=UserRole.ADMIN,
        invited_by=None,
        created_at=NOW,
        expires_at=LATEST_MS,
    )
    await store.invitations.add(invitation, "", AuditEntry(new_uuid(), NOW, ALICE, "invite", None, {}))
    await database.close()
    looked = await found(given)
    agents, keys = looked["budgets"]
    assert (agents.verdict, keys.verdict) == ("problem", "problem")
    assert agents.message.startswith("Agents have a budget (Spender), so that they can't use")
    assert keys.message.startswith(f"API keys have a budget (CI of {ALICE}), so that")
    assert all(it.message.endswith("work/small.") for it in (agents, keys))
    (rule,) = looked["tool rules"]
    assert (rule.verdict, "Ruled: tme.* changes nothing" in rule.message) == ("warning", True)
    assert "invitations" not in looked
    (invited,) = [it async for it in examine(given, {}, internet=True) if it.check == "invitations"]
    assert invited.verdict == "warning"
    assert "invited:ann (an admin) until 9999-12-31" in invited.message


async def test_folder_that_somebody_names_and_that_does_not_exist_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (told,) = (await found(settings(tmp_path)))["data folder"]
    assert (told.verdict, "data doesn't exist" in told.message) == ("warning", True)
    (told,) = (await found(Settings.load({})))["data folder"]
    assert (told.verdict, told.message.endswith("will be created at the first start.")) == ("ok", True)


async def test_wrong_password_in_a_file_names_the_file(tmp_path: Path, nowhere: str):
    url = f"postgresql://tk@{nowhere.removeprefix('http://')}/tk"
    variables = {
        "THREADKEEP_DATABASE_URL": url,
        "THREADKEEP_DATABASE_PASSWORD_FILE": "/run/secrets/database-password",
    }
    (told,) = (await found(settings(tmp_path, database_url=url, database_password=MARK), **variables))[
        "database"
    ]
    assert told.advice
    assert "THREADKEEP_DATABASE_PASSWORD_FILE (/run/secrets/database-password)" in told.advice


async def test_folder_on_postgresql_is_not_said_to_come_at_the_start(tmp_path: Path, nowhere: str):
    on_postgres = settings(tmp_path, database_url=f"postgresql://tk@{nowhere.removeprefix('http://')}/tk")
    (told,) = (await found(on_postgres))["data folder"]
    assert told.message.endswith("with the first agent or file.")
    on_postgres.data.mkdir(mode=0o700)
    (told,) = (await found(on_postgres))["data folder"]
    assert told.message.endswith("belongs to this user.")


async def test_missing_key_and_missing_file_are_explained(tmp_path: Path):
    (finding,) = (await found(settings(tmp_path, gateway="openai")))["model"]
    assert (finding.verdict, "OPENAI_API_KEY" in (finding.advice or "")) == ("problem", True)
    tables = {"work": GatewayTable(kind="openai", api_key_env="WORK_KEY")}
    keyless, _ = (await found(settings(tmp_path, gateway="openai", gateways=tables)))["model"]
    assert (keyless.verdict, "WORK_KEY" in keyless.message) == ("problem", True)
    (finding,) = (await found(settings(tmp_path, gateway="local", model=str(tmp_path / "x.gguf"))))["model"]
    assert (finding.verdict, "THREADKEEP_MODEL" in (finding.advice or "")) == ("problem", True)


async def test_agents_in_code_are_imported_and_a_line_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    program = "from threadkeep.agents import agent\n\n@agent(version=3)\nasync def looked_at(turn): ...\n"
    (tmp_path / "looked_at.py").write_text(program)
    (tmp_path / "looked_at_broken.py").write_text("import nothing_like_this\n")
    (finding,) = (await found(settings(tmp_path, agents=("looked_at:looked_at",))))["agents"]
    assert (finding.verdict, finding.message) == ("ok", "Agents in code: looked-at (version 3).")
    (finding,) = (await found(settings(tmp_path, agents=("looked_at_broken:orders",))))["agents"]
    assert (finding.verdict, "looked_at_broken.py, line 1" in finding.message) == ("problem", True), finding


async def test_database_is_looked_at_without_changing_it(tmp_path: Path, database_url: str):
    given = settings(
        tmp_path, database_url=database_url, secret_key=secret_key_for(database_url), gateway="openai"
    )
    database = await open_database(database_url, pool_size=1)
    try:
        (finding,) = (await found(given))["database"]
        assert (finding.verdict, "up to date" in finding.message) == ("ok", True)
        if not given.on_sqlite:  # another folder doesn't mean another database
            assert f", database {urlsplit(given.database).path[1:]} on " in finding.message
        await _forget_migrations(database)
        (finding,) = (await found(given))["database"]
        assert "The next start applies" in finding.message
        await database.execute(
            Statement("INSERT INTO tk_migrations (version, name, applied_at) VALUES (9999, 'x', 0)")()
        )
        (finding,) = (await found(given))["database"]
        assert (finding.verdict, "newer" in finding.message) == ("problem", True)
        assert await database.fetch(Statement("SELECT version FROM tk_migrations")()) == [(9999,)]
    finally:
        await database.close()


async def _forget_migrations(database: Database) -> None:
    await database.execute(Statement("DELETE FROM tk_migrations")())


async def test_database_that_is_away_is_a_problem_without_its_password(tmp_path: Path, nowhere: str):
    url = f"postgresql://u:{MARK}@{nowhere.removeprefix('http://')}/x"
    findings = await found(settings(tmp_path, database_url=url, gateway="openai"))
    assert [it.verdict for it in findings["database"]] == ["problem"]


async def test_postgresql_without_a_secret_key_is_warned_of(tmp_path: Path, database_url: str):
    findings = await found(settings(tmp_path, database_url=database_url, gateway="openai"))
    expected = "ok" if database_url.startswith("sqlite") else "warning"
    assert [it.verdict for it in findings["secret key"]] == [expected]


async def test_folder_open_to_others_or_not_writable_is_told(tmp_path: Path):
    (tmp_path / "data").mkdir(mode=0o755)
    (finding,) = (await found(settings(tmp_path, gateway="openai")))["data folder"]
    assert (finding.verdict, finding.advice) == ("warning", f"chmod 700 {tmp_path / 'data'}")
    (tmp_path / "file").touch()
    given = Settings.load({}, data=tmp_path / "file" / "data", gateway="openai")
    (finding,) = (await found(given))["data folder"]
    assert finding.verdict == "problem"


@pytest.mark.parametrize(("free", "verdict"), [(50_000_000, "problem"), (500_000_000, "warning")])
async def test_little_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, verdict: str):
    usage = shutil.disk_usage(tmp_path)._replace(free=free)

    def disk_usage(folder: Path) -> object:
        return usage

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    (finding,) = (await found(settings(tmp_path, gateway="openai")))["disk"]
    assert (finding.verdict, bool(finding.advice)) == (verdict, True)


async def test_page_and_extras_that_are_missing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installed, "FOLDER", tmp_path / "page")

    def without_docx(name: str) -> object:
        return None if name == "docx" else find_spec(name)

    monkeypatch.setattr(installed, "find_spec", without_docx)
    findings = await found(settings(tmp_path, gateway="openai"))
    (page,) = findings["page"]
    assert page.verdict == "warning"
    (missing,) = [it for it in findings["extras"] if it.verdict != "ok"]
    assert (missing.verdict, missing.advice) == ("warning", adding("documents"))


async def test_model_for_search_by_meaning_that_is_missing_is_told_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def without_weights(package: str) -> None:
        return None

    monkeypatch.setattr(installed, "weights_folder", without_weights)
    (missing,) = [
        it for it in (await found(settings(tmp_path, gateway="openai")))["extras"] if it.verdict != "ok"
    ]
    assert (missing.verdict, "by keyword" in missing.message) == ("warning", True)
    elsewhere = await found(settings(tmp_path, gateway="openai", embedding_url="off"))
    assert {it.verdict for it in elsewhere["extras"]} == {"ok"}


async def test_serving_strangers_without_sign_in_is_a_problem(tmp_path: Path):
    (finding,) = (await found(settings(tmp_path, gateway="openai", host="0.0.0.0")))["settings"]
    assert (finding.verdict, "loopback" in finding.message) == ("problem", True)


def test_settings_that_are_refused_are_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THREADKEEP_PORT", "many")
    assert main(["doctor", "--json"]) == 1
    report = msgspec.json.decode(capsys.readouterr().out)
    assert [(it["check"], it["verdict"]) for it in report["findings"]] == [("settings", "problem")]


async def test_more_connections_than_the_database_server_has_are_a_problem(
    tmp_path: Path, postgres: Postgres
):
    url = postgres.create_database(template=TEMPLATE)
    few, many = (settings(tmp_path, database_url=url, processes=count) for count in (2, 64))
    (finding,) = (await found(few))["connections"]
    assert finding.verdict == "ok" and finding.message.startswith("2 processes may use 16 connections")
    (finding,) = (await found(many))["connections"]
    assert finding.verdict == "problem" and "THREADKEEP_PROCESSES" in (finding.advice or "")


@pytest.mark.skipif(not sandbox_kinds(), reason="needs a sandbox")
def test_python_that_programs_do_not_see_is_no_hole_in_the_sandbox(tmp_path: Path):
    """Reached through a link in /tmp, as some tools make environments."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "python").symlink_to(os.path.realpath(sys.executable))
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "python").symlink_to(tmp_path / "links" / "python")
    (venv.parent / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    code = "import sys; from threadkeep.cli import main; sys.exit(main(['doctor', '--json']))"
    path = os.pathsep.join((*(it for it in sys.path if it), str(SOURCE)))
    told = subprocess.run(
        [venv / "python", "-c", code],
        cwd=tmp_path,
        env=environment({"gateway": "openai", "embedding_url": "off"}) | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    findings = msgspec.json.decode(told.stdout)["findings"]
    (sandbox,) = (it for it in findings if it["check"] == "sandbox")
    assert "didn't run" in sandbox["message"]
    assert "link" in sandbox["advice"]


@NEEDS_PGBOUNCER
async def test_pooler_through_which_listen_does_not_arrive_is_a_problem(tmp_path: Path, postgres: Postgres):
    url = postgres.create_database(template=TEMPLATE)
    (finding,) = (await found(settings(tmp_path, database_url=url)))["bus"]
    assert finding.verdict == "ok"
    with PgBouncer(url) as pooler:
        pooled = {"database_url": pooler.url}
        (finding,) = (await found(settings(tmp_path, **pooled)))["bus"]
        assert (finding.verdict, "THREADKEEP_BUS_URL=poll:" in (finding.advice or "")) == ("problem", True)
        (finding,) = (await found(settings(tmp_path, bus_url="poll:", **pooled)))["bus"]
        assert finding.verdict == "ok"
