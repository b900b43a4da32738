"""`threadkeep rerun`: runs turns of an agent again with other models, and writes a page to compare them.

The results are lines of `reruns.jsonl`, written as they come: the same command again does only the rest.
"""

import argparse
import asyncio
import hashlib
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct, structs

from threadkeep.cli.access_tokens import issue
from threadkeep.cli.commands import runs, text_of
from threadkeep.cli.comparison import ComparedRun, comparison_page
from threadkeep.cli.progress import Progress
from threadkeep.cli.target import connect, find_agent, leave, log_only_errors
from threadkeep.client.blocking import LoopThread
from threadkeep.client.client import Client, Rating
from threadkeep.client.errors import ClientError
from threadkeep.domain.errors import RateLimited, StorageRefused, ThreadkeepError
from threadkeep.domain.message import MessageRole, MessageStatus
from threadkeep.domain.user import User, user_id
from threadkeep.settings import Settings
from threadkeep.wire.reruns import RerunView
from threadkeep.wire.views import AgentView

AT_ONCE = 4
INTERRUPTED = 130
TOKEN_S = 86_400
RATE_PAUSE_S = 5.0
MOST_PAUSES = 24
RESULTS, PAGE = "reruns.jsonl", "comparison.html"


class Line(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A rerun of one turn with one model, or why there is none."""

    turn_id: str
    model: str
    settings: str
    """A digest of what else was changed; a rerun with other settings is another one."""
    result: RerunView | None = None
    error: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What it is a rerun of, within the same settings."""
        return self.turn_id, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which turns to run again, and how."""

    agent: str
    models: Sequence[str]
    rating: Rating | None
    since: datetime | None
    limit: int
    temperature: float | None
    system_prompt: str | None

    @property
    def settings(self) -> str:
        """A digest of what is changed beside the model."""
        changed = msgspec.json.encode([self.temperature, self.system_prompt])
        return hashlib.sha256(changed).hexdigest()[:16]


def add_rerun(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, _run)
    command.add_argument("--agent", required=True, help="the agent's name")
    command.add_argument(
        "--model", required=True, action="append", help="a model to try; repeat it for several"
    )
    command.add_argument("--out", required=True, type=Path, help="the folder for the results")
    command.add_argument(
        "--feedback",
        choices=("up", "down"),
        help="turns with this rating that you can read: your own, and those shared with you as the agent's "
        "owner (default: your own turns, newest first)",
    )
    command.add_argument("--since", type=_moment, help="only turns since this day or time (RFC 3339)")
    command.add_argument("--limit", type=_count, default=20, help="how many turns at most (20)")
    command.add_argument("--temperature", type=float, help="another temperature")
    command.add_argument(
        "--system-prompt", type=Path, metavar="FILE", help="another system prompt; for the agent's owner"
    )
    command.add_argument(
        "--url", help="server address (http://127.0.0.1:8710; if none runs, the data folder, if it exists)"
    )
    who = command.add_mutually_exclusive_group()
    who.add_argument("--token", help="your bearer token, if the server has sign-in")
    who.add_argument("--user", help="create a token for this user instead; requires the server's secret")


def _run(settings: Settings, given: argparse.Namespace) -> int:
    log_only_errors()
    token = issue(settings, User(user_id(given.user)), TOKEN_S) if given.user else given.token
    wanted = Wanted(
        agent=given.agent,
        models=list(dict.fromkeys(given.model)),
        rating=given.feedback,
        since=given.since,
        limit=given.limit,
        temperature=given.temperature,
        system_prompt=text_of(given.system_prompt) if given.system_prompt else None,
    )
    return rerun_many(settings, wanted, given.out, url=given.url, token=token)


def rerun_many(
    settings: Settings, wanted: Wanted, folder: Path, *, url: str | None, token: str | None
) -> int:
    """Runs the turns again and writes the comparison; 0 if none has failed."""
    results = Results(folder, wanted.settings)
    progress = Progress("Rerunning")
    stack, loop = AsyncExitStack(), LoopThread()
    try:
        chosen = loop.wait(_rerun(settings, stack, wanted, results, progress, url=url, token=token))
    except KeyboardInterrupt:
        progress.end()
        print("Stopped. The same command continues.", file=sys.stderr)
        return INTERRUPTED
    finally:
        leave(loop, stack)
        results.close()
    progress.end()
    lines = results.of(chosen, wanted.models)
    page = folder / PAGE
    page.write_text(comparison_page(*_heading(wanted), [_compared(it) for it in lines]), encoding="utf-8")
    failed = [it for it in lines if it.result is None]
    turns, reruns = _counted(len(chosen), "turn"), _counted(len(lines) - len(failed), "rerun")
    print(f"{page}: {turns}, {reruns}, {len(failed)} failed.")
    for why in dict.fromkeys(it.error for it in failed):
        print(f"Failed: {why}", file=sys.stderr)
    if not chosen:
        print("No turns found.", file=sys.stderr)
    return 1 if failed or not chosen else 0


async def _rerun(
    settings: Settings,
    stack: AsyncExitStack,
    wanted: Wanted,
    results: "Results",
    progress: Progress,
    *,
    url: str | None,
    token: str | None,
) -> list[str]:
    """Does what is missing; returns the turns."""
    client = await connect(settings, stack, url=url, token=token)
    agent = await find_agent(client, wanted.agent)
    chosen: list[str] = []
    async with aclosing(_turns(client, agent, wanted)) as turns:
        async for turn_id in turns:
            chosen.append(turn_id)
            if len(chosen) == wanted.limit:
                break
    pairs = [(turn_id, model) for turn_id in chosen for model in wanted.models]
    missing = [pair for pair in pairs if not results.has(pair)]
    waiting, total = iter(missing), len(pairs)
    done = total - len(missing)
    progress.show(done, total)

    async def work() -> None:
        nonlocal done
        for turn_id, model in waiting:
            results.add(await _line(client, wanted, turn_id, model))
            done += 1
            progress.show(done, total)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return chosen


async def _line(client: Client, wanted: Wanted, turn_id: str, model: str) -> Line:
    """One rerun; a problem of it is its result, and the others go on."""
    line = Line(turn_id=turn_id, model=model, settings=wanted.settings)
    for attempt in range(MOST_PAUSES + 1):
        try:
            result = await client.rerun(
                turn_id, model=model, temperature=wanted.temperature, system_prompt=wanted.system_prompt
            )
            return structs.replace(line, result=result)
        except ClientError as exc:
            if exc.code != RateLimited.code or attempt == MOST_PAUSES:
                return structs.replace(line, error=exc.message)
            await asyncio.sleep(RATE_PAUSE_S)
        except ThreadkeepError as exc:
            return structs.replace(line, error=exc.message)
    raise AssertionError("the last attempt returns")


async def _turns(client: Client, agent: AgentView, wanted: Wanted) -> AsyncGenerator[str]:
    """The turns that fit, newest first."""
    since = wanted.since.astimezone(UTC).isoformat().replace("+00:00", "Z") if wanted.since else None
    if wanted.rating is not None:
        async for rated in client.agent_feedback(agent.id, rating=wanted.rating, since=since):
            if rated.turn_id is not UNSET:
                yield rated.turn_id
        return
    async for conversation in client.conversations(agent_id=agent.id):
        if wanted.since and datetime.fromisoformat(conversation.updated_at) < wanted.since:
            return
        async for message in client.messages(conversation.id, newest_first=True):
            if wanted.since and datetime.fromisoformat(message.created_at) < wanted.since:
                break
            is_reply = message.role is MessageRole.ASSISTANT and message.status is MessageStatus.COMPLETED
            if is_reply and message.turn_id:
                yield message.turn_id


class Results:
    """The lines of a folder, and of this run; each is written as soon as it is there."""

    def __init__(self, folder: Path, settings: str) -> None:
        path = folder / RESULTS
        self._settings = settings
        self._known: dict[tuple[str, str], Line] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            before = path.read_bytes() if path.exists() else b""
            self._file = path.open("ab")
            if before and not before.endswith(b"\n"):  # the last run was cut off in the middle of a line
                self._file.write(b"\n")
        except OSError as exc:
            raise StorageRefused(f"Couldn't write to {folder}: {exc.strerror or exc}.") from exc
        for raw in before.splitlines():
            try:
                self._keep(msgspec.json.decode(raw, type=Line))
            except msgspec.DecodeError:
                continue

    def has(self, pair: tuple[str, str]) -> bool:
        """Whether a rerun is done; one that failed is tried again."""
        line = self._known.get(pair)
        return line is not None and line.result is not None

    def add(self, line: Line) -> None:
        """Writes a line."""
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        self._keep(line)

    def of(self, turns: Iterable[str], models: Sequence[str]) -> list[Line]:
        """The lines of these turns with these models."""
        pairs = ((turn_id, model) for turn_id in turns for model in models)
        return [self._known[pair] for pair in pairs if pair in self._known]

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _keep(self, line: Line) -> None:
        if line.settings == self._settings:
            self._known[line.key] = line


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _compared(line: Line) -> ComparedRun:
    return ComparedRun(turn_id=line.turn_id, model=line.model, result=line.result, error=line.error)


def _heading(wanted: Wanted) -> tuple[str, str]:
    changed = [", ".join(wanted.models)]
    if wanted.temperature is not None:
        changed.append(f"temperature {wanted.temperature:g}")
    if wanted.system_prompt is not None:
        changed.append("another system prompt")
    rated = {"up": ", rated good", "down": ", rated bad", None: ""}[wanted.rating]
    return f"{wanted.agent}: answers compared", f"Turns{rated}, run again with {' · '.join(changed)}"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day or time such as 2026-01-31") from exc
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of turns")
    return int(text)
