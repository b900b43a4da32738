"""deploy/start, the image's entry point, in a root of its own: only what compose.yaml mounts is writable.

Docker isn't needed for this, only bubblewrap. docs/docker.md says what was tried otherwise.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from tests.postgres import free_port
from threadkeep import Settings
from threadkeep.testing.waiting import PATIENCE_S

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
USER = "10001"

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


def image_environment() -> dict[str, str]:
    """What the Dockerfile sets."""
    (block,) = re.findall(
        r"^ENV (PATH=/opt/threadkeep/.*?[^\\])$", text("Dockerfile"), re.MULTILINE | re.DOTALL
    )
    return dict(it.split("=", 1) for it in block.replace("\\\n", " ").split())


def text(name: str) -> str:
    return (DEPLOY / name).read_text("utf-8")


def service(file: str, name: str = "threadkeep") -> Any:
    """One of the services, with the defaults of its variables."""
    return yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text(file)))["services"][name]


def shown_at(path: Path) -> Path:
    """Where the image has a path: this clone may be in /tmp, which programs in a sandbox don't see."""
    return Path("/opt/clone") / path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


class Image:
    """A root like the image's: the programs, an account that is nobody's, /data and /secrets."""

    def __init__(self, folder: Path) -> None:
        self.data, self.secrets = folder / "data", folder / "secrets"
        programs = folder / "programs"
        for made in (self.data, self.secrets, programs):
            made.mkdir(mode=0o700)
        programs.chmod(0o755)
        shutil.copy(DEPLOY / "start", programs)
        python = shown_at(Path(sys.executable))
        for name, command in {"python": "", "threadkeep": " -m threadkeep"}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{python}"{command} "$@"\n')
            (programs / name).chmod(0o755)
        self._programs = programs

    def command(self, *arguments: str, **environment: str) -> list[str]:
        """The entry point with arguments, in this root."""
        code = {Path(it).resolve() for it in (sys.prefix, sys.base_prefix, ROOT)} - {Path("/usr")}
        shown = [it for path in sorted(code) for it in ("--ro-bind", str(path), str(shown_at(path)))]
        links = [it for it in ("bin", "lib", "lib64") if Path("/", it).is_symlink()]
        settings = image_environment() | environment | {"PATH": f"{self._programs}:/usr/bin:/bin"}
        return [
            "bwrap", "--unshare-user", "--uid", USER, "--gid", USER, "--die-with-parent",
            "--ro-bind", "/usr", "/usr", *(a for it in links for a in ("--symlink", f"usr/{it}", f"/{it}")),
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *shown,
            "--ro-bind", str(self._programs), str(self._programs),
            "--bind", str(self.data), "/data", "--bind", str(self.secrets), "/secrets", "--remount-ro", "/",
            "--clearenv", *(a for name, it in settings.items() for a in ("--setenv", name, it)),
            "--setenv", "PYTHONPATH", str(shown_at(ROOT / "src")), "--setenv", "HOME", "/data",
            "start", *arguments,
        ]  # fmt: skip

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The entry point, to its end."""
        return subprocess.run(
            self.command(*arguments, **environment),
            env={"PATH": f"{self._programs}:{os.defpath}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


class Container:
    """`docker compose up` of the service: the entry point with `threadkeep serve`, and what it prints."""

    def __init__(self, image: Image, **environment: str) -> None:
        self._lines: list[str] = []
        self._changed = threading.Condition()
        reading, writing = os.pipe()
        command = image.command("threadkeep", "serve", **environment)
        self._process = subprocess.Popen(
            [command[0], "--info-fd", str(writing), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[writing],
        )
        os.close(writing)
        with os.fdopen(reading) as info:
            self._pid = json.load(info)["child-pid"]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def wait_for(self, words: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: words in self.output, PATIENCE_S), self.output

    def stop(self) -> int:
        """What `docker compose stop` does."""
        os.kill(self._pid, signal.SIGTERM)
        return self._process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.kill(self._pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


@pytest.fixture
def settings() -> dict[str, str]:
    """Those of compose.sqlite.yaml, on another port, without a model."""
    port = str(free_port())
    given = {
        name: str(it).replace("8710", port)
        for name, it in service("compose.sqlite.yaml")["environment"].items()
    }
    return given | {
        "THREADKEEP_GATEWAY": "openai",
        "THREADKEEP_EMBEDDING_URL": "off",
        "THREADKEEP_SHUTDOWN_GRACE_S": "0",
    }


@needs_bubblewrap
def test_first_start_prints_a_link_that_signs_the_first_admin_in_and_later_ones_do_not(
    image: Image, settings: dict[str, str]
):
    page = settings["THREADKEEP_PUBLIC_URL"]
    with Container(image, **settings) as container:
        container.wait_for("For another link")
        (token,) = re.findall(rf"{page}/#/invitation/(\S+)", container.output)
        assert container.stop() == 0
    assert image.run("health", **settings).returncode == 1
    with Container(image, **settings) as container:
        container.wait_for("is invited already")  # nobody has used the link: it stays the only one
        assert "#/invitation" not in container.output
        assert image.run("health", **settings).returncode == 0
        with httpx.Client(base_url=page, headers={"Origin": page}, trust_env=False) as browser:
            accepted = browser.post("/api/sign-in/invitation/accept", json={"token": token})
            assert accepted.json() == {"id": "invited:admin", "role": "admin"}
            assert browser.get("/api/me").json()["role"] == "admin"
        # `docker compose exec`, as the line said.
        another = image.run("threadkeep", "invite", "admin", "--admin", **settings)
        assert another.stdout.startswith(f"{page}/#/invitation/"), another.stderr


@needs_bubblewrap
def test_programs_have_a_sandbox_in_the_image(image: Image, settings: dict[str, str]):
    told = image.run("threadkeep", "doctor", "--json", **settings)
    found = {it["check"]: it for it in json.loads(told.stdout)["findings"]}
    assert found["sandbox"]["verdict"] == "ok", found["sandbox"]
    assert "bubblewrap" in found["sandbox"]["message"]


@needs_bubblewrap
def test_secrets_are_made_once_and_only_their_files_have_them(image: Image):
    made = image.run("secrets")
    assert made.returncode == 0, made.stderr
    files = sorted(image.secrets.iterdir())
    assert [it.name for it in files] == ["database-password", "secret-key"]
    values = [it.read_text() for it in files]
    assert all(len(it.strip()) > 32 for it in values)
    assert {it.stat().st_mode & 0o777 for it in files} == {0o600}
    assert not [it for it in values if it.strip() in made.stdout]
    again = image.run("secrets", POSTGRES_PASSWORD="another")
    assert (again.returncode, again.stdout) == (0, "")
    assert [it.read_text() for it in files] == values
    # The services find them where compose.yaml says.
    server, database = service("compose.yaml"), service("compose.yaml", "database")
    given = {
        name: str(value).replace("/secrets/", f"{image.secrets}/")
        for name, value in server["environment"].items()
    }
    settings = Settings.load(given)
    password = conninfo_to_dict(settings.database)["password"]
    assert f"{password}\n" == values[0]
    assert settings.secret_keys == (values[1].strip(),)
    assert database["environment"]["POSTGRES_PASSWORD_FILE"] == "/secrets/database-password"


@needs_bubblewrap
def test_secrets_of_an_earlier_compose_file_stay(image: Image):
    assert image.run("secrets", POSTGRES_PASSWORD="earlier", THREADKEEP_SECRET_KEY="k" * 32).returncode == 0
    assert (image.secrets / "database-password").read_text() == "earlier\n"
    assert (image.secrets / "secret-key").read_text() == f"{'k' * 32}\n"
