"""What the README tells people to type works."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.scripted_model import Pause, Say, ScriptedModel
from tests.serving import serving

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str, section: str) -> list[str]:
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(section: str, url: str, before: str = "") -> str:
    """What the commands of a section print."""
    script = "\n".join([before, *blocks("sh", section)]).replace("http://127.0.0.1:8710", url)
    # Each bare curl prints one answer; a line end keeps them apart.
    script = re.sub(r"^(curl .*)$", r"\1; echo", script, flags=re.MULTILINE)
    return subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, timeout=100, check=True
    ).stdout


def test_conversation_in_a_minute(tmp_path: Path):
    with serving(tmp_path) as server:
        printed = run("A conversation in a minute", server.url)
    lines = [line for line in printed.splitlines() if line and not line.startswith("data: ")]
    me, listed, read, renamed, restored = (json.loads(line) for line in lines)
    assert me == {"id": "local", "role": "admin"}
    assert "data: [DONE]" in printed
    assert listed["items"][0]["title"] == read["title"] == "合同咨询"
    assert (renamed["title"], renamed["metadata"]) == ("Contract", {"case": 7})
    assert restored["id"] == read["id"]


def test_three_things_to_try(tmp_path: Path):
    with ScriptedModel(otherwise=[*([Say("word "), Pause(0.05)] * 200)]) as model:
        settings = {"THREADKEEP_GATEWAY": "openai", "THREADKEEP_GATEWAY_URL": model.url}
        with serving(tmp_path, settings) as server:
            printed = run("Three things to try", server.url, f"TK={server.url}")
    ids = [int(seq) for seq in re.findall(r"^id: (\d+)$", printed, re.MULTILINE)]
    resumed = ids.index(4, ids.index(4) + 1)
    assert ids[:resumed] == list(range(1, resumed + 1))
    assert ids[resumed:] == list(range(4, 4 + len(ids) - resumed))
    stopped = json.loads(printed.splitlines()[-1])
    assert stopped["status"] == "GENERATION_ABORTED"
    assert stopped["content"].startswith("word word ")


async def test_application_that_mounts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python", "In your application")
    names: dict[str, Any] = {}
    exec(code, names)  # the README's own words
    async with names["chat"].lifespan():
        transport = httpx.ASGITransport(names["app"])
        async with httpx.AsyncClient(transport=transport, base_url="https://host.example") as client:
            nobody = await client.get("/chat/api/me")
            me = await client.get("/chat/api/me", headers={"x-user": "alice"})
            agents = await client.get("/chat/api/agents", headers={"x-user": "alice"})
            made = await client.put(
                f"/chat/api/agents/{agents.json()['items'][0]['id']}/conversation",
                headers={"x-user": "alice"},
            )
            again = await client.get(made.headers["location"], headers={"x-user": "alice"})
    assert nobody.status_code == 401
    assert me.json() == {"id": "alice", "role": "user"}
    assert again.json()["id"] == made.json()["id"]


def test_every_page_that_is_linked_exists():
    for target in re.findall(r"\]\(([^):#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
