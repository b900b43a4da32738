"""docs/operating.md, docs/hardening.md and deploy/: the snippets work, and what they name is there."""

import os
import re
import subprocess
import sys
import tomllib
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.serving import Server, environment
from threadkeep import Settings
from threadkeep.cli import main
from threadkeep.doctor.internet import check_internet
from threadkeep.handling.stream import HEARTBEAT_EVERY_S
from threadkeep.http.server.server import PING_EVERY_S
from threadkeep.mcp.processes.sandbox import sandbox_kinds
from threadkeep.settings import misnamed
from threadkeep.testing import Gate, Say, ScriptedModel, Wait

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
HARDENING = (ROOT / "docs" / "hardening.md").read_text(encoding="utf-8")
DOCKER = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
DEFAULTS = Settings.load({})


def section(title: str, page: str = GUIDE) -> str:
    return page.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


def blocks(language: str, title: str, page: str = GUIDE) -> list[str]:
    """The snippets of a section."""
    return re.findall(rf"```{language}\n(.*?)```", section(title, page), re.DOTALL)


def sh(code: str, folder: Path, settings: dict[str, str], **variables: str) -> str:
    """Runs a snippet as people do; `threadkeep` is the one under test."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "threadkeep").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m threadkeep "$@"\n')
    (programs / "threadkeep").chmod(0o755)
    env = environment(settings) | variables
    env["PATH"] = os.pathsep.join((str(programs), env["PATH"]))
    done = subprocess.run(
        ["sh", "-euc", code], cwd=folder, env=env, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_table_of_settings_is_what_the_program_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("THREADKEEP_PORT")
    assert main(["settings", "--markdown"]) == 0
    table = capsys.readouterr().out
    assert len(table.splitlines()) == 2 + len(Settings.__struct_fields__)
    assert table in section("Settings"), "put the output of `threadkeep settings --markdown` there"


def test_snippets_work_against_a_running_server(tmp_path: Path, model: ScriptedModel):
    settings = {
        "gateway": "openai",
        "gateway_url": model.url,
        "model": "scripted",
        "log_format": "json",
        "jwt_secret": "a-secret-for-tests-that-is-long-enough",
    }
    gate = Gate()
    model.script([Say("One "), Wait(gate)])
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / ".threadkeep").symlink_to("data")
    with Server(tmp_path, **settings) as server:
        token = sh("threadkeep token --user alice", tmp_path, settings).strip()
        with server.client(token) as client:
            sent = client.post(
                "/api/chat", json={"content": "Why?"}, headers={"Accept": "application/json"}
            ).json()
            metrics = client.get("/metrics").text
        named = set(re.findall(r"`(threadkeep_\w+)", section("Metrics")))
        assert named == set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))
        commands = "\n".join(blocks("sh", "Running turns"))
        told = sh(commands, tmp_path, settings, TK=server.url, TURN=sent["turnId"])
        listed, workers, stopped = (msgspec.json.decode(it) for it in told.replace("}{", "}\n{").splitlines())
        assert [it["id"] for it in listed["items"]] == [sent["turnId"]]
        assert workers == {"items": [], "nextCursor": None}
        assert stopped == {"turnId": sent["turnId"], "status": "GENERATION_ABORTED"}
        gate.open()
        assert "0 problems" in sh(blocks("sh", "Health checks")[0], tmp_path, settings)
        assert "Restored " in sh(blocks("sh", "Backup and restore")[0], tmp_path, settings)
        assert server.stop() == 0
    # The line that is shown is one that there is.
    (shown,) = (msgspec.json.decode(it) for it in blocks("json", "Logs"))
    lines: list[dict[str, Any]] = [msgspec.json.decode(line) for line in server.output.splitlines()]
    assert shown.keys() in [line.keys() for line in lines]


def test_service_names_settings_that_there_are_and_gives_turns_their_time():
    text = (DEPLOY / "threadkeep.service").read_text(encoding="utf-8")
    unit = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    names = re.findall(r"^Environment=(\w+)=", text, re.MULTILINE)
    assert "THREADKEEP_DATA" in names
    assert misnamed(dict.fromkeys(names, "")) == []
    assert int(unit["TimeoutStopSec"]) >= DEFAULTS.shutdown_grace_s + 15
    assert unit["StateDirectoryMode"] == "0700"
    assert unit["EnvironmentFile"] in section("systemd")


def compose(file: str) -> Any:
    """A compose file with the defaults of its variables."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    return yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))


@pytest.mark.parametrize("file", ["compose.yaml", "compose.sqlite.yaml"])
def test_containers_name_settings_that_there_are_and_give_turns_their_time(file: str):
    services = compose(file)["services"]
    service = services["threadkeep"]
    assert misnamed(dict.fromkeys(service["environment"], "")) == []
    assert int(service["stop_grace_period"].removesuffix("s")) >= DEFAULTS.shutdown_grace_s + 15
    assert service["environment"]["THREADKEEP_PORT"] == DEFAULTS.port
    # Only a proxy, or this machine, reaches the server.
    assert service.get("ports", []) in ([], [f"127.0.0.1:{DEFAULTS.port}:{DEFAULTS.port}"])
    used = {it.partition(":")[0] for one in services.values() for it in one["volumes"]}
    assert {it for it in used if not it.startswith(".")} == set(compose(file)["volumes"])
    given = Settings.load(
        {name: str(it) for name, it in service["environment"].items() if not name.endswith("_FILE")}
        | {"THREADKEEP_INVITATIONS": "on"}
    )
    assert given.sign_in_rules.public_url is not None


def test_server_believes_only_the_proxy_who_a_client_is():
    services, networks = (compose("compose.yaml")[it] for it in ("services", "networks"))
    (address,) = (it["ipv4_address"] for it in services["proxy"]["networks"].values())
    (network,) = networks["default"]["ipam"]["config"]
    assert services["threadkeep"]["environment"]["THREADKEEP_TRUSTED_PROXIES"] == address
    assert ip_address(address) in ip_network(network["subnet"])
    assert ip_address(address) not in ip_network(network["ip_range"])  # which others are given
    caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    assert f"dynamic a threadkeep {DEFAULTS.port} " in caddy
    assert "respond /metrics 404" in caddy


def test_image_is_built_from_what_it_names_and_can_be_pinned():
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert misnamed(dict.fromkeys(re.findall(r"(THREADKEEP_\w+)=", dockerfile), "")) == []
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    copied = {it for line in copies for it in line.split()}
    assert all((ROOT / path).exists() for path in copied)
    # No secret and no data can come into a layer: all else is left out.
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[1] == "*"
    assert {it[1:] for it in ignored if it.startswith("!")} == copied
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    images = dict(re.findall(r"\$\{(\w+_IMAGE):-([^}]+)\}", text))
    assert len(images) == 3
    for variable, usual in images.items():
        assert f"{variable}={usual}@$(digest {usual})" in DOCKER
    assert f"ARG PYTHON_IMAGE={images['PYTHON_IMAGE']}\n" in dockerfile


def test_env_of_the_docker_page_is_private_and_read_by_the_compose_file(tmp_path: Path):
    (writing,) = blocks("sh", "For a team", DOCKER)
    sh(writing, tmp_path, {})
    env = tmp_path / ".env"
    assert env.stat().st_mode & 0o077 == 0
    names = [line.partition("=")[0] for line in env.read_text(encoding="utf-8").splitlines()]
    read = (DEPLOY / "compose.yaml").read_text(encoding="utf-8") + (DEPLOY / "start").read_text(
        encoding="utf-8"
    )
    assert [it for it in names if it not in read and it != "ANTHROPIC_API_KEY"] == []


def test_proxy_leaves_limits_to_us_and_waits_for_signs_of_life():
    conf = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    given = dict(re.findall(r"^\s*(\w+)\s+([^;{]+);", conf, re.MULTILINE))
    headers = dict(re.findall(r"proxy_set_header (\S+) ([^;]+);", conf))
    assert given["client_max_body_size"] == "0"  # ours are the limits
    assert int(given["proxy_read_timeout"].removesuffix("s")) > 2 * max(HEARTBEAT_EVERY_S, PING_EVERY_S)
    assert (given["proxy_buffering"], given["proxy_http_version"]) == ("off", "1.1")
    assert headers["Host"] == "$http_host"
    assert {"X-Forwarded-For", "Upgrade", "Connection"} <= headers.keys()
    assert f"127.0.0.1:{DEFAULTS.port}" in conf


def test_everything_that_is_installed_for_a_server_comes_by_hash():
    """Or is made from what came so."""
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"pip (?:install|wheel) .*", dockerfile + section("systemd"))
    script = (ROOT / "scripts" / "env").read_text(encoding="utf-8").replace("$root/", "").replace('"', "")
    installs += re.findall(r"\binstall --.*", script)
    assert len(installs) == 17
    for command in installs:
        by_hash = "--require-hashes" in command and "-r requirements/" in command
        made_here = "--no-deps" in command and ("--no-build-isolation" in command or "--no-index" in command)
        assert by_hash or made_here, command
    locked = (ROOT / "requirements" / "build.lock").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in project["build-system"]["requires"]:
        assert f"\n{requirement.partition('>')[0]}==" in f"\n{locked}"


INTERNET = "Before you put it on the internet"


def test_page_for_the_internet_followed_to_the_letter_leaves_nothing_to_do(
    tmp_path: Path, model: ScriptedModel
):
    model.otherwise = [Say("ok")]
    own = {
        "THREADKEEP_GATEWAY": "openai",
        "THREADKEEP_GATEWAY_URL": model.url,
        "THREADKEEP_GATEWAY_API_KEY": "sk-scripted",
        "THREADKEEP_MODEL": "scripted",
    }
    writing, looking = blocks("sh", INTERNET, HARDENING)
    looking = looking.replace("--internet", "--internet --json").rstrip()
    found = msgspec.json.decode(sh(f"{writing}{looking} || true", tmp_path, own))["findings"]
    assert (tmp_path / "threadkeep.env").stat().st_mode & 0o077 == 0
    points = set(re.findall(r"^\| `([^`]+)` \|", section(INTERNET, HARDENING), re.MULTILINE))
    # What the machine of the tests lacks, the doctor has to see.
    lacking = {"account"} if os.geteuid() == 0 else set[str]()
    lacking |= set() if sandbox_kinds() else {"sandbox"}
    assert {it["check"] for it in found if it["verdict"] == "problem"} == lacking
    assert not [it for it in found if it["verdict"] == "warning" and it["check"] in points]
    assert points == {it.check for it in check_internet(DEFAULTS)} | {"data folder", "sandbox", "invitations"}
    assert points <= {it["check"] for it in found}


def test_every_point_for_the_internet_is_missed_where_it_is_not_met():
    poor = Settings.load(
        {},
        host="0.0.0.0",
        database_url="postgresql://nowhere/none",
        cors_origins="http://a.example",
        mcp_stdio="owner",
        mcp_allow_private=True,
        max_iterations=0,
        user_turns_per_minute=0,
        user_running_turns=0,
        user_uploads_per_minute=0,
        user_writes_per_minute=0,
        user_documents=0,
        user_bytes=0,
    )
    well = {it.check for it in check_internet(poor) if it.verdict == "ok"}
    assert well == (set[str]() if os.geteuid() == 0 else {"account"})
    assert all(it.advice for it in check_internet(poor) if it.verdict != "ok")


def test_scrape_is_of_the_metrics():
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{DEFAULTS.port}"]}]


def test_every_page_and_section_that_is_linked_exists():
    for target in re.findall(r"\]\(([^):]+)\)", GUIDE):
        page, _, section = target.partition("#")
        assert (ROOT / "docs" / page).exists(), target
        if section:
            text = (ROOT / "docs" / page).read_text(encoding="utf-8") if page else GUIDE
            assert section in sections(text), target


def sections(text: str) -> set[str]:
    found = re.findall(r"^##+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", it.lower()).replace(" ", "-") for it in found}
