"""What docs/hosting.md tells people to write works."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.hosts.applications import listening
from tests.http.process import END_S, environment
from tests.postgres import Postgres
from threadkeep import Settings, create_app

GUIDE = (Path(__file__).parents[1] / "docs" / "hosting.md").read_text(encoding="utf-8")


def block(language: str, section: str) -> str:
    """The one snippet of a section."""
    text = GUIDE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    (found,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return found


async def run(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs a snippet, which may await things."""
    compiled = compile(code, "docs/hosting.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, names)
    if inspect.iscoroutine(result):
        await result
    return names


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("section", "sign_in"), [("FastAPI", {"Cookie": "session=a-session"}), ("Starlette", {"x-user": "alice"})]
)
async def test_application_mounts_it(section: str, sign_in: dict[str, str]):
    names = await run(block("python", section), {})
    async with (
        listening(names["app"], lifespan="on") as address,
        httpx.AsyncClient(base_url=f"http://{address}/chat", headers=sign_in) as client,
    ):
        assert (await client.get("/api/me")).json() == {"id": "alice", "role": "user"}
        assert (await client.get("/")).status_code in {200, 307}  # without a built page one is led on
        agents = (await client.get("/api/agents")).json()["items"]
        made = await client.put(f"/api/agents/{agents[0]['id']}/conversation")
        assert made.headers["location"] == f"/chat/api/conversations/{made.json()['id']}"
        client.headers.clear()
        assert (await client.get("/api/me")).status_code == 401


SITE = """
SECRET_KEY = "x" * 50
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware",
              "django.contrib.auth.middleware.AuthenticationMiddleware"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}}
ROOT_URLCONF = "mysite.urls"
ALLOWED_HOSTS = ["*"]
"""
URLS = """
from django.contrib.auth import alogin, authenticate
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import path

async def sign_in(request):
    await alogin(request, await User.objects.aget(username=request.GET["name"]))
    return HttpResponse("welcome")

urlpatterns = [path("", lambda request: HttpResponse("the site")), path("sign-in", sign_in)]
"""
PREPARE = """
import django
django.setup()
from django.core.management import call_command
from django.contrib.auth.models import User
call_command("migrate", verbosity=0)
for name in ("alice", "bob"):
    User.objects.create_user(name)
"""


def test_django_site_mounts_it(folder: Path):
    site = folder / "mysite"
    site.mkdir()
    (site / "settings.py").write_text(SITE)
    (site / "urls.py").write_text(URLS)
    (site / "asgi.py").write_text(block("python", "Django"))
    env = environment({}) | {"DJANGO_SETTINGS_MODULE": "mysite.settings"}
    env["PYTHONPATH"] = os.pathsep.join((env["PYTHONPATH"], str(folder)))
    subprocess.run([sys.executable, "-c", PREPARE], cwd=folder, env=env, check=True)
    command = [sys.executable, "-m", "uvicorn", "--port", "0", "mysite.asgi:application"]
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    try:
        url = next(it[1] for line in process.stderr if (it := re.search(r"running on (http://\S+)", line)))
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
            assert client.get("/").text == "the site"
            assert client.get("/chat/api/me").status_code == 401
            for name, key in (("alice", "1"), ("bob", "2")):
                assert client.get(f"/sign-in?name={name}").text == "welcome"
                assert client.get("/chat/api/me").json() == {"id": key, "role": "user"}
            agents = client.get("/chat/api/agents").json()["items"]
            made = client.put(f"/chat/api/agents/{agents[0]['id']}/conversation")
            assert client.get(made.headers["location"]).json()["userId"] == "2"
    finally:
        process.terminate()
        process.communicate(timeout=END_S)
    assert process.returncode in {0, -15}


async def test_user_goes_and_own_code_asks():
    chat = create_app(Settings.load({}), current_user=lambda request: request.headers.get("x-user"))
    async with chat.lifespan():
        names = await run(block("python", "Using it from your own code"), {"chat": chat})
        assert (names["me"].id, names["conversations"]) == ("alice", [])
        await run(block("python", "When a user goes"), {"chat": chat})


async def test_key_that_points_at_the_hosts_table_is_as_told(postgres: Postgres):
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as host:
        host.execute("CREATE TABLE users (id integer PRIMARY KEY)")
        host.execute("INSERT INTO users VALUES (7)")
        environ = {
            "THREADKEEP_DATABASE_URL": url,
            **dict([re.findall(r"(THREADKEEP_USER_TABLE)=(\S+?)`", GUIDE)[0]]),
        }
        chat = create_app(Settings.load(environ), current_user=lambda request: "7")
        async with (
            chat.lifespan(),
            httpx.AsyncClient(transport=httpx.ASGITransport(chat), base_url="http://host") as client,
        ):
            agents = (await client.get("/api/agents")).json()["items"]
            assert (await client.put(f"/api/agents/{agents[0]['id']}/conversation")).status_code == 201
            host.execute(block("sql", "When a user goes").encode())
            assert (await client.get("/api/conversations")).json()["items"] == []
        host.execute(re.findall(r"`(ALTER TABLE .*?)`", GUIDE)[0].encode())


def test_every_page_that_is_linked_exists():
    for target in re.findall(r"\]\(([^):#]+)\)", GUIDE):
        assert (Path(__file__).parents[1] / "docs" / target).exists(), target
