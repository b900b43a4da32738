"""The commits of a turn, each named after what it stores: `step_end find_order`, `the end`."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import TurnId
from threadkeep.storage.approvals import SqlApprovals
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import SqlTurnLog
from threadkeep.storage.turns import SqlTurns
from threadkeep.testing.diaries import Diary
from threadkeep.wire.claim_keys import describe_key
from threadkeep.wire.programs import bare_name

T = TypeVar("T")
Moment = Literal["before", "after"]

COMMITS = (
    ("turns", SqlTurns, "begin", "begin"),
    ("turns", SqlTurns, "end", "the end"),
    ("log", SqlTurnLog, "append", ""),
    ("log", SqlTurnLog, "pause", "pause"),
    ("log", SqlTurnLog, "reset_attempts", "progress"),
    ("approvals", SqlApprovals, "add", "request"),
    ("approvals", SqlApprovals, "decide", "answer"),
)
"""All that a turn commits: where in the store, by which method, and its name, unless the log says it."""

_MAIN = ("step_end", "save", "step", "code")
"""What names a commit of several entries."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Position:
    """Right before or right after a commit."""

    moment: Moment
    commit: str

    def __str__(self) -> str:
        return f"{self.moment} {self.commit}"


class Crashed(Exception):
    """From a position on, nothing is committed."""


class Commits:
    """Notes what a Threadkeep commits of its turn, and says when it comes to a position."""

    def __init__(self, diary: Diary, at: Position | None, when_reached: Callable[[], None]) -> None:
        self._diary = diary
        self._at = at
        self._when_reached = when_reached
        self._has_crashed = False
        self._counts = Counter[str]()
        self._model_calls = set[str]()

    def crash(self) -> None:
        """From now on, nothing is committed."""
        self._has_crashed = True

    def watch(self, store: Store) -> None:
        """Watches one store; after a crash, each commit fails as for a node that has lost its turn."""
        for noun, kind, method, name in COMMITS:
            room = getattr(store, noun)
            vars(room)[method] = partial(_lost_if_crashed, self._watched(name, getattr(kind, method)), room)

    def watch_all(self) -> None:
        """Watches every store that this process will open."""
        for _, kind, method, name in COMMITS:
            write = getattr(kind, method)
            setattr(kind, method, self._watched(name, write))

    def _watched(self, name: str, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def commit(room: Any, *args: Any, **kwargs: Any) -> Any:
            entries = list(_entries(args[0])) if not name else []
            return await self.commit(
                name or _name_of(entries), entries, partial(write, room, *args, **kwargs)
            )

        return commit

    async def commit(self, what: str, entries: list[dict[str, Any]], write: Callable[[], Awaitable[T]]) -> T:
        """Commits, unless it has crashed or does so now."""
        if self._has_crashed:
            raise Crashed
        self._counts[what] += 1
        count = self._counts[what]
        name = what if count == 1 else f"{what} ({count})"
        self._come_to("before", name)
        done = await write()
        self._diary.write({"commit": name, "model_calls": self._finished_model_calls(entries)})
        self._come_to("after", name)
        return done

    def _come_to(self, moment: Moment, name: str) -> None:
        if self._at == Position(moment, name):
            self._diary.write({"reached": str(self._at)})
            self._when_reached()
        if self._has_crashed:
            raise Crashed

    def _finished_model_calls(self, entries: list[dict[str, Any]]) -> int:
        self._model_calls.update(it["key"] for it in entries if "key" in it and it.get("kind") == "model")
        ended = (it for it in entries if it["type"] == "step_end" and it["status"] == "ok")
        return sum(it["key"] in self._model_calls for it in ended)


async def _lost_if_crashed(write: Callable[..., Awaitable[Any]], room: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return await write(room, *args, **kwargs)
    except Crashed:
        if isinstance(room, SqlTurnLog):
            return set[TurnId]()
        raise StorageConflict("This Threadkeep has crashed.") from None


def commits_in(diary: Diary) -> list[str]:
    """The names of all commits."""
    return [it["commit"] for it in diary.read() if "commit" in it]


def has_reached(diary: Diary, at: Position) -> bool:
    """Whether a Threadkeep has come to a position."""
    return any(it.get("reached") == str(at) for it in diary.read())


def model_calls_in(diary: Diary) -> int:
    """How many calls of a model are recorded as finished."""
    return sum(it["model_calls"] for it in diary.read() if "commit" in it)


def _entries(chunks: Any) -> Iterator[dict[str, Any]]:
    """The entries of chunks of a log, as JSON."""
    for chunk, _ in chunks:
        for line in chunk.events.split("\n"):
            if line:
                yield _decode(line.lstrip("\t").partition("\t")[0])


def _name_of(entries: list[dict[str, Any]]) -> str:
    """What a commit of these entries is called."""
    if not entries:
        return "receipt"
    kinds = {it["type"]: it for it in reversed(entries)}
    main = next((kinds[it] for it in _MAIN if it in kinds), entries[-1])
    if main["type"] not in ("step", "step_end"):
        return str(main["type"])
    name = main.get("name") or describe_key(f"{main['key'].rpartition('/')[0]}/1")
    return f"{main['type']} {bare_name(name)}"
