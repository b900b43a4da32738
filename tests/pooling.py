"""A real PgBouncer in transaction mode, in front of the tests' PostgreSQL."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

import pytest

from tests.postgres import free_port

# Debian has it where only root looks.
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
PROGRAM = shutil.which("pgbouncer", path=PATH)
NEEDS_PGBOUNCER = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")
STARTS_WITHIN_S = 30

SETTINGS = """[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 500
server_login_retry = 1
"""


class PgBouncer:
    """A pooler that gives every transaction whichever session is free, until it is closed."""

    def __init__(self, database_url: str, *, pool_size: int = 4) -> None:
        self._parts = urlsplit(database_url)
        assert self._parts.hostname, "the tests' PostgreSQL listens on TCP"
        self._port = free_port()
        # It refuses to run as root.
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="threadkeep-pgbouncer-"))
        settings = SETTINGS.format(
            host=self._parts.hostname,
            port=self._parts.port or 5432,
            listen_port=self._port,
            folder=self._folder,
            pool_size=pool_size,
        )
        (self._folder / "settings").write_text(settings)
        user, password = (unquote(it or "") for it in (self._parts.username, self._parts.password))
        (self._folder / "users").write_text(f'"{user}" "{password}"\n')
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the same database through the pooler."""
        login, _, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{login}@127.0.0.1:{self._port}").geturl()

    def start(self) -> Self:
        """Starts it and returns once it takes connections."""
        assert PROGRAM, "pgbouncer is not installed"
        if self._account:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-q", self._folder / "settings"],
                user=self._account and self._account.pw_uid,
                group=self._account and self._account.pw_gid,
                extra_groups=() if self._account else None,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + STARTS_WITHIN_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"pgbouncer did not start: {(self._folder / 'log').read_text()}")
            time.sleep(0.02)
        return self

    def stop(self) -> None:
        """Ends it with all its connections."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder)
