"""`threadkeep ingest`: uploads files and folders for an agent to search.

As in `threadkeep chat`, the terminal and Ctrl-C belong to the main thread, and everything that waits for the
network runs in an event loop in a second one.
"""

import argparse
import asyncio
import os
import shutil
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from threadkeep.cli.access_tokens import issue
from threadkeep.cli.commands import runs
from threadkeep.cli.target import add_target, connect, find_agent, leave, log_only_errors
from threadkeep.cli.terminal import clean
from threadkeep.client.blocking import LoopThread
from threadkeep.client.client import Client
from threadkeep.domain.document import HEAD_BYTES, DocumentStatus, media_type_of
from threadkeep.domain.errors import ThreadkeepError, UnsupportedDocument
from threadkeep.domain.user import User, user_id
from threadkeep.settings import Settings
from threadkeep.wire.documents import DocumentView

AT_ONCE = 4  # a server reads as many at once
INTERRUPTED = 130
TOKEN_S = 86_400
"""How long its token is valid: many large files take their time."""
BAR_COLUMNS = 24

Outcome = Literal["ready", "already added", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Source:
    """A file to send; `named` by the user, or found in a named folder."""

    path: Path
    named: bool


@dataclass(frozen=True, slots=True)
class Result:
    """A file's result, and the reason."""

    path: Path
    outcome: Outcome
    detail: str


def add_ingest(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _run)
    command.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="a file, or a folder to add recursively"
    )
    add_target(command)
    who = command.add_mutually_exclusive_group()
    who.add_argument("--token", help="your bearer token, if the server has sign-in")
    who.add_argument("--user", help="create a token for this user instead; requires the server's secret")


def _run(settings: Settings, given: argparse.Namespace) -> int:
    log_only_errors()
    token = issue(settings, User(user_id(given.user)), TOKEN_S) if given.user else given.token
    return ingest(settings, given.paths, agent=given.agent, url=given.url, token=token)


def ingest(
    settings: Settings, paths: Sequence[Path], *, agent: str | None, url: str | None, token: str | None
) -> int:
    """Uploads all files and waits until they have been read; 0 if none has failed."""
    sources = list(find_files(paths))
    progress = Bar(sys.stdout, len(sources)) if _is_terminal(sys.stdout) else Lines(sys.stdout)
    stack = AsyncExitStack()
    loop = LoopThread()
    try:
        results = loop.wait(_ingest(settings, stack, sources, progress, agent=agent, url=url, token=token))
    except KeyboardInterrupt:
        progress.end("Stopped. A running server still processes the files already sent.")
        return INTERRUPTED
    finally:
        leave(loop, stack)
    progress.end("\n".join(summary(results)))
    return 1 if not results or any(it.outcome == "failed" for it in results) else 0


def find_files(paths: Iterable[Path]) -> Iterator[Source]:
    """The named files, and those in named folders, each once; no hidden ones."""
    seen: set[Path] = set()
    for path in paths:
        inside = sorted(_walk(path)) if path.is_dir() else [path]
        for file in inside:
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield Source(file, named=not path.is_dir())


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(root, name)
            if not name.startswith(".") and path.is_file():  # not a pipe or a device
                yield path


async def _ingest(
    settings: Settings,
    stack: AsyncExitStack,
    sources: Sequence[Source],
    progress: "Bar | Lines",
    *,
    agent: str | None,
    url: str | None,
    token: str | None,
) -> list[Result]:
    client = await connect(settings, stack, url=url, token=token)
    agent_id = (await find_agent(client, agent)).id
    sender = Sender(client, agent_id, progress)
    sender.known |= {document.id async for document in client.documents(agent_id)}
    waiting = iter(sources)

    async def work() -> None:
        for source in waiting:
            await sender.take(source)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return sender.results


@dataclass(slots=True)
class Sender:
    """Sends files to one agent."""

    client: Client
    agent_id: str
    progress: "Bar | Lines"
    known: set[str] = field(default_factory=set[str])
    results: list[Result] = field(default_factory=list[Result])

    async def take(self, source: Source) -> None:
        """Uploads one file and waits until it has been read; any problem becomes its result."""
        try:
            result = await self._send(source)
        except UnsupportedDocument as exc:
            # A named file is wanted; a folder may contain anything.
            result = Result(source.path, "failed" if source.named else "skipped", exc.message)
        except ThreadkeepError as exc:
            result = Result(source.path, "failed", exc.message)
        except OSError as exc:
            result = Result(source.path, "failed", f"{exc.strerror or exc}.")
        self.results.append(result)
        self.progress.show_result(result)

    async def _send(self, source: Source) -> Result:
        path, name = source.path, shown(source.path.name)
        if not path.is_file() and path.exists():
            raise UnsupportedDocument(f"{name} is not a file.")
        with path.open("rb") as file:
            media_type_of(name, file.read(HEAD_BYTES))
            file.seek(0)
            document = await self.client.add_document(self.agent_id, name, file)
        is_known = document.id in self.known
        self.known.add(document.id)
        if is_known and document.status is not DocumentStatus.FAILED:
            return Result(path, "already added", f"as {document.file_name}")
        if is_known:
            document = await self.client.retry_document(self.agent_id, document.id)
        document = await self.client.until_read(self.agent_id, document.id, on_progress=self.progress.move)
        if document.status is DocumentStatus.FAILED:
            return Result(path, "failed", document.error or "Couldn't process the file.")
        return Result(path, "ready", f"{document.chunk_count} chunk{'s' * (document.chunk_count != 1)}")


class Lines:
    """A line for each file, for logs and pipes."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def move(self, document: DocumentView) -> None:
        """Prints nothing about files in progress."""

    def show_result(self, result: Result) -> None:
        """A file is done."""
        self.end(line(result))

    def end(self, text: str) -> None:
        """Everything is done; prints this."""
        self._out.write(f"{text}\n")
        self._out.flush()


class Bar:
    """One line of a terminal, redrawn again and again."""

    def __init__(self, out: IO[str], total: int) -> None:
        self._out = out
        self._total = total
        self._done = 0
        self._moving: dict[str, DocumentView] = {}

    def move(self, document: DocumentView) -> None:
        """A file is being read."""
        self._moving[document.file_name] = document
        self._draw(document.file_name)

    def show_result(self, result: Result) -> None:
        """A file is done."""
        self._done += 1
        self._moving.pop(shown(result.path.name), None)
        self._draw(shown(result.path.name))

    def end(self, text: str) -> None:
        """Everything is done; replaces the bar with this."""
        self._out.write(f"\r\x1b[K{text}\n")
        self._out.flush()

    def _draw(self, name: str) -> None:
        share = (self._done + sum(it.progress for it in self._moving.values())) / self._total
        full = min(BAR_COLUMNS, round(BAR_COLUMNS * share))
        head = f"[{'#' * full}{'.' * (BAR_COLUMNS - full)}] {self._done}/{self._total} "
        room = shutil.get_terminal_size().columns - len(head) - 1
        self._out.write(f"\r{head}{_cut(clean(name), room)}\x1b[K")
        self._out.flush()


def line(result: Result) -> str:
    """A file's result in one line."""
    return f"{result.outcome}: {shown(result.path)}: {shown(result.detail)}"


def summary(results: Sequence[Result]) -> list[str]:
    """How many of each, and every rejected file with the reason."""
    if not results:
        return ["No files to send."]
    counts = Counter(it.outcome for it in results)
    not_taken = sorted((it for it in results if it.outcome in ("skipped", "failed")), key=lambda it: it.path)
    files = f"{len(results)} file{'s' * (len(results) != 1)}"
    return [f"{files}: {', '.join(f'{count} {name}' for name, count in sorted(counts.items()))}."] + [
        f"  {line(it)}" for it in not_taken
    ]


def shown(text: str | Path) -> str:
    """A name that can be printed and sent: invalid UTF-8 is marked, and nothing controls the terminal."""
    return clean(os.fsencode(text).decode("utf-8", "replace")).replace("\n", " ").replace("\t", " ")


def _is_terminal(out: IO[str]) -> bool:
    return out.isatty() and os.environ.get("TERM") != "dumb"


def _cut(text: str, columns: int) -> str:
    """The part of a text that fits; Chinese characters take two columns."""
    for place, character in enumerate(text):
        columns -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if columns < 0:
            return text[:place]
    return text
