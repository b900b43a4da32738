"""The log of the process: the format and subject of its lines; never users' words, never secrets."""

import logging
import sys
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast

import msgspec

from threadkeep.domain.errors import ThreadkeepError

LogFormat = Literal["text", "json"]

_MOST_CAUSES = 10
# They log every request, or repeat what servers sent, including session ids.
_TALKATIVE = {
    "httpx2": logging.WARNING,
    "mcp": logging.CRITICAL,
    "client": logging.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What the lines of a task are about; tasks that it starts inherit it."""

    request_id: str | None = None
    conversation_id: str | None = None
    turn_id: str | None = None


_NOTHING = Subject()
_NAMES = tuple(field.name for field in fields(Subject))
_subject: ContextVar[Subject] = ContextVar("subject", default=_NOTHING)


def begin_subject(subject: Subject) -> None:
    """From here on the lines of this task are about this."""
    _subject.set(subject)


def add_to_subject(**ids: str) -> None:
    """From here on the lines of this task are about this, too."""
    _subject.set(replace(_subject.get(), **ids))


@contextmanager
def about(subject: Subject = _NOTHING) -> Generator[None]:
    """Lines within the block are about this; without a subject, for tasks that outlive their starter."""
    token = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(token)


def set_up_logs(level: str, log_format: LogFormat, *, process: int | None = None) -> None:
    """Sends every line of this process to stderr in one format, including those of libraries and warnings.

    If several processes share it, each line says whose it is.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(process) if log_format == "json" else TextLines(process))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name, at_least in _TALKATIVE.items():
        logging.getLogger(name).setLevel(at_least)


class TextLines(logging.Formatter):
    """Lines for people; details are indented below their line."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__()
        self._source = "" if process is None else f" worker={process}"

    def format(self, record: logging.LogRecord) -> str:
        """One line, and a stack trace if there is one."""
        # A line break in a message could fake a line of ours.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        ids = "".join(f" {name.removesuffix('_id')}={value}" for name, value in _ids())
        line = f"{_time(record)} {record.levelname} {record.name} {message}{self._source}{ids}"
        stack = _stack(record)
        return f"{line}\n    {stack.rstrip().replace(chr(10), chr(10) + '    ')}" if stack else line


class JsonLines(logging.Formatter):
    """Lines for programs: one object each, including a record's `extra={"fields": …}`."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__()
        self._source = {} if process is None else {"worker": process}

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._source,
            **dict(_ids()),
            **getattr(record, "fields", {}),
        }
        if stack := _stack(record):
            line["stack"] = stack
        return msgspec.json.encode(line).decode()


def describe(error: BaseException) -> str:
    """An error's type, and its message if it is ours or the system's; others may quote data."""
    kind = type(error).__qualname__
    words = str(error) if isinstance(error, ThreadkeepError | OSError) else ""
    return f"{kind}: {words}" if words else kind


def _ids() -> Iterator[tuple[str, str]]:
    subject = _subject.get()
    if subject is not _NOTHING:
        for name in _NAMES:
            if value := getattr(subject, name):
                yield name, value


def _time(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03}Z"


def _stack(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return "".join(_trace(error, _MOST_CAUSES)) if error is not None else ""


def _trace(error: BaseException, most: int) -> Iterator[str]:
    """An error with its causes, as Python prints it, without messages that aren't ours."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and most > 1:
        yield from _trace(cause, most - 1)
        yield "which led to:\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{describe(error)}\n"
    if isinstance(error, BaseExceptionGroup) and most > 1:
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _trace(inner, most - 1)
