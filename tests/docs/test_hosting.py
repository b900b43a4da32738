"""docs/hosting.md, carried out: three host applications and a database of the host's own."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import httpx
import psycopg

from tests.docs.pages import DOCS
from tests.docs.scripts import GRAVITY
from tests.docs.walk import Walk
from tests.postgres import Postgres
from tests.serving import environment

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


def make_django_site(folder: Path) -> None:
    """What somebody who has a Django site has already."""
    site = folder / "mysite"
    site.mkdir()
    (site / "settings.py").write_text(SITE)
    (site / "urls.py").write_text(URLS)
    env = environment({}) | {"DJANGO_SETTINGS_MODULE": "mysite.settings"}
    env["PYTHONPATH"] = os.pathsep.join((env["PYTHONPATH"], str(folder)))
    subprocess.run([sys.executable, "-c", PREPARE], cwd=folder, env=env, check=True)


def visit_django_site(url: str) -> None:
    """Whoever is signed in to the site is signed in to the chat."""
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        assert client.get("/").text == "the site"
        assert client.get("/chat/api/me").status_code == 401
        for name, key in (("alice", "1"), ("bob", "2")):
            assert client.get(f"/sign-in?name={name}").text == "welcome"
            assert client.get("/chat/api/me").json() == {"id": key, "role": "user", "installation": ANY}
        agents = client.get("/chat/api/agents").json()["items"]
        made = client.put(f"/chat/api/agents/{agents[0]['id']}/conversation")
        assert made.headers["location"] == f"/chat/api/conversations/{made.json()['id']}"
        assert client.get(made.headers["location"]).json()["userId"] == "2"


def test_applications_mount_it_as_written(tmp_path: Path, postgres: Postgres):
    make_django_site(tmp_path)
    database = postgres.create_database()
    with Walk(DOCS / "hosting.md", tmp_path, GRAVITY, {"DATABASE_URL": database}) as walk:
        walk.all()
        visit_django_site(walk.address("8002"))
        with psycopg.connect(database, autocommit=True) as host:
            host.execute("ALTER TABLE tk_users DROP COLUMN host_id")  # the page's way back
