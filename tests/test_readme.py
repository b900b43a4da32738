"""What the README tells people to type works."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving import serving

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str, section: str) -> list[str]:
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_conversation_in_a_minute(tmp_path: Path):
    script = "\n".join(blocks("sh", "A conversation in a minute"))
    # Each bare curl prints one JSON answer; a line end keeps them apart.
    script = re.sub(r"^(curl .*)$", r"\1; echo", script, flags=re.MULTILINE)
    with serving(tmp_path) as server:
        script = script.replace("http://127.0.0.1:8710", server.url)
        done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, timeout=60, check=True)
    answers: list[Any] = [json.loads(line) for line in done.stdout.splitlines() if line]
    me, listed, read, renamed, archived, main, same, restored = answers
    assert me == {"id": "local", "role": "admin"}
    assert listed["items"][0]["title"] == read["title"] == "合同咨询"
    assert (renamed["title"], renamed["metadata"], archived["status"]) == (
        "Contract",
        {"case": 7},
        "archived",
    )
    assert main["id"] == same["id"] != restored["id"] == read["id"]
    assert main["isMain"]


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
    for target in re.findall(r"\]\(([^):]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
