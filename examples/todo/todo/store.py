"""Users, their sessions and their tasks, in one SQLite file."""

import hashlib
import secrets
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS users (
    id integer PRIMARY KEY AUTOINCREMENT,
    name text NOT NULL UNIQUE,
    salt blob NOT NULL,
    password blob NOT NULL
);
CREATE TABLE IF NOT EXISTS sessions (
    token text PRIMARY KEY,
    user_id integer NOT NULL REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS tasks (
    id integer PRIMARY KEY AUTOINCREMENT,
    user_id integer NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    title text NOT NULL,
    done integer NOT NULL DEFAULT 0
);
"""


class NameTaken(Exception):
    """Somebody has this name already."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who can sign in."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Task:
    """Something to be done."""

    id: int
    title: str
    done: bool


class Store:
    """Everything that the application keeps."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)

    # Users

    def register(self, name: str, password: str) -> User:
        """Makes a user."""
        salt = secrets.token_bytes(16)
        row = (name, salt, _hash(password, salt))
        try:
            with self._connected() as connection:
                made = connection.execute("INSERT INTO users (name, salt, password) VALUES (?, ?, ?)", row)
                return User(made.lastrowid or 0, name)
        except sqlite3.IntegrityError as exc:
            raise NameTaken from exc

    def authenticate(self, name: str, password: str) -> User | None:
        """The user with this name, if the password is theirs."""
        with self._connected() as connection:
            found = connection.execute(
                "SELECT id, salt, password FROM users WHERE name = ?", (name,)
            ).fetchone()
        # An unknown name takes as long as a wrong password.
        id_, salt, expected = found or (0, b"nobody's", b"")
        return User(id_, name) if secrets.compare_digest(_hash(password, salt), expected) else None

    def delete_user(self, user_id: int) -> None:
        """Removes a user with their sessions and tasks."""
        with self._connected() as connection:
            connection.execute("DELETE FROM users WHERE id = ?", (user_id,))

    def open_session(self, user: User) -> str:
        """Signs a user in; what their browser keeps. We keep only its hash."""
        token = secrets.token_urlsafe(32)
        with self._connected() as connection:
            connection.execute("INSERT INTO sessions VALUES (?, ?)", (_fingerprint(token), user.id))
        return token

    def close_session(self, token: str) -> None:
        """Signs a user out."""
        with self._connected() as connection:
            connection.execute("DELETE FROM sessions WHERE token = ?", (_fingerprint(token),))

    def user_of(self, token: str | None) -> User | None:
        """Who is signed in with this token."""
        with self._connected() as connection:
            found = connection.execute(
                "SELECT id, name FROM users JOIN sessions ON user_id = id WHERE token = ?",
                (_fingerprint(token or ""),),
            ).fetchone()
        return User(*found) if found else None

    # Tasks

    def tasks(self, user_id: int) -> list[Task]:
        """A user's tasks, oldest first."""
        with self._connected() as connection:
            rows = connection.execute(
                "SELECT id, title, done FROM tasks WHERE user_id = ? ORDER BY id", (user_id,)
            ).fetchall()
        return [_task(row) for row in rows]

    def add_task(self, user_id: int, title: str) -> Task:
        """Makes a task."""
        with self._connected() as connection:
            row = connection.execute(
                "INSERT INTO tasks (user_id, title) VALUES (?, ?) RETURNING id, title, done", (user_id, title)
            ).fetchone()
        return _task(row)

    def change_task(
        self, user_id: int, task_id: int, title: str | None = None, done: bool | None = None
    ) -> Task | None:
        """Changes what is given of a user's own task."""
        with self._connected() as connection:
            row = connection.execute(
                """UPDATE tasks SET title = COALESCE(?, title), done = COALESCE(?, done)
                WHERE id = ? AND user_id = ? RETURNING id, title, done""",
                (title, done, task_id, user_id),
            ).fetchone()
        return _task(row) if row else None

    def delete_task(self, user_id: int, task_id: int) -> bool:
        """Removes a user's own task; whether there was one."""
        with self._connected() as connection:
            deleted = connection.execute("DELETE FROM tasks WHERE id = ? AND user_id = ?", (task_id, user_id))
            return deleted.rowcount == 1

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            with connection:
                yield connection
        finally:
            connection.close()


def _task(row: tuple[int, str, int]) -> Task:
    id_, title, done = row
    return Task(id_, title, bool(done))


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


def _fingerprint(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
