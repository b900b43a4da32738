"""`threadkeep chat`: talking to an agent in the terminal.

The terminal belongs to the main thread, which waits for lines and for Ctrl-C. All that waits for the
network runs in an event loop in a second thread.
"""

import asyncio
import importlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Coroutine, Generator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import IO, Any, TypeVar

from threadkeep.client.embedded import embedded
from threadkeep.client.remote import Json, Remote, RemoteError
from threadkeep.gateways.local import DEMONSTRATION_MODEL
from threadkeep.settings import Settings
from threadkeep.tasks import end_tasks

T = TypeVar("T")

HELP = """/new    begin a new conversation
/help   show this
/quit   leave; so does Ctrl-D
Ctrl-C  stop the answer; what was said is kept. Once more: leave"""
DEMONSTRATION = (
    "This is a small demonstration model: it answers, but knows little. "
    "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or see `threadkeep settings`, for a real one."
)
MOST_ARGUMENT_CHARACTERS = 200

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
# What a model says is text and must not steer the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Screen:
    """Shows what comes as it comes; asides are dimmed where the output is a terminal."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._dims = out.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ
        self._kind: str | None = None
        self._is_at_start = True
        self._told_of_demonstration = False

    def show(self, event: Json) -> None:
        """One event of a turn."""
        match event["type"]:
            case "turn_start":
                if event["model"] == DEMONSTRATION_MODEL and not self._told_of_demonstration:
                    self._told_of_demonstration = True
                    self.aside(DEMONSTRATION)
            case "text":
                self._stream("text", event["text"])
            case "thought":
                self._stream("thought", event["text"])
            case "tool_call":
                arguments = json.dumps(event["arguments"], ensure_ascii=False)
                self.aside(f"→ {event['tool_name']} {_short(arguments)}")
            case "tool_result":
                told = event.get("error") or event["status"]
                self.aside(f"← {event['tool_name']}: {_short(str(told))}")
            case "notice":
                self.aside(f"! {event['message']}")
            case "done":
                if event["status"] == "CANCELLED":
                    self.aside("(stopped; what was said is kept)")
                self._end_line()
            case "error":
                self.line(f"Error: {event['message']}")
            case _:
                pass

    def aside(self, text: str) -> None:
        """A line that is no part of the reply."""
        self._end_line()
        self._write(self._dimmed(_clean(text)) + "\n")

    def line(self, text: str) -> None:
        """A line of its own."""
        self._end_line()
        self._write(_clean(text) + "\n")

    def _stream(self, kind: str, text: str) -> None:
        if self._kind != kind:
            self._end_line()
            self._kind = kind
        text = _clean(text)
        self._write(self._dimmed(text) if kind == "thought" else text)

    def _end_line(self) -> None:
        self._kind = None
        if not self._is_at_start:
            self._write("\n")

    def _dimmed(self, text: str) -> str:
        return f"{_DIM}{text}{_PLAIN}" if self._dims and text else text

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self._is_at_start = text.removesuffix(_PLAIN).endswith("\n")


class Chat:
    """One talk: an agent, a conversation, and what it is shown on."""

    def __init__(self, remote: Remote, agent: Json, conversation: Json, screen: Screen) -> None:
        self.agent = agent
        self._remote = remote
        self._conversation = conversation
        self._screen = screen

    async def say(self, content: str) -> None:
        """Sends a message and shows the answer."""
        try:
            async for event in self._remote.say(self._conversation, content):
                self._screen.show(event)
        except RemoteError as exc:
            self._screen.line(f"Error: {exc.message}")

    async def stop(self) -> None:
        """Stops the answer that is under way."""
        with suppress(RemoteError):
            await self._remote.abort(self._conversation)

    async def begin_anew(self) -> None:
        """Begins a new conversation."""
        try:
            before, self._conversation = (
                self._conversation,
                await self._remote.new_conversation(self.agent),
            )
        except RemoteError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        is_same = before["id"] == self._conversation["id"]
        self._screen.aside(
            "This agent has one conversation only; it goes on." if is_same else "(a new conversation)"
        )


def chat(settings: Settings, *, agent: str | None, url: str | None, token: str | None) -> int:
    """Talks until the user leaves."""
    screen = Screen(sys.stdout)
    stack = AsyncExitStack()
    with _loop() as loop:
        try:
            talk = _wait(loop, _open(settings, stack, screen, agent=agent, url=url, token=token))
            _converse(loop, talk, screen)
        except KeyboardInterrupt:
            screen.line("")
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # we are leaving; more of them change nothing
            _wait(loop, stack.aclose())
    return 0


async def _open(
    settings: Settings,
    stack: AsyncExitStack,
    screen: Screen,
    *,
    agent: str | None,
    url: str | None,
    token: str | None,
) -> Chat:
    remote = Remote(url or _usual_url(settings), token)
    stack.push_async_callback(remote.close)
    if url is None and not await remote.is_there():
        remote = Remote(await stack.enter_async_context(embedded(settings)), token)
        stack.push_async_callback(remote.close)
    found = await remote.agent(agent)
    talk = Chat(remote, found, await remote.main_conversation(found), screen)
    screen.aside(f"Talking to {found['name']}. /help tells what else there is; Ctrl-D leaves.")
    return talk


def _usual_url(settings: Settings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def _converse(loop: asyncio.AbstractEventLoop, talk: Chat, screen: Screen) -> None:
    prompt = "> " if sys.stdin.isatty() and sys.stdout.isatty() else ""
    if prompt:
        with suppress(ImportError):
            importlib.import_module("readline")  # line editing and history
    while True:
        try:
            line = input(prompt).encode("utf-8", "replace").decode().strip()
        except EOFError:
            if prompt:
                screen.line("")
            return
        match line:
            case "":
                continue
            case "/quit" | "/exit":
                return
            case "/help":
                screen.aside(HELP)
            case "/new":
                _wait(loop, talk.begin_anew())
            case _ if re.fullmatch(r"/\w+", line):
                screen.aside(f"There is no {line}.\n{HELP}")
            case _:
                _answer(loop, talk, line)


def _answer(loop: asyncio.AbstractEventLoop, talk: Chat, line: str) -> None:
    """Waits for the answer. Ctrl-C stops it; a second one comes out of here and leaves."""
    answering = asyncio.run_coroutine_threadsafe(talk.say(line), loop)
    try:
        try:
            answering.result()
        except KeyboardInterrupt:
            _wait(loop, talk.stop())
            answering.result()
    finally:
        answering.cancel()


def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    future: Future[T] = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise


@contextmanager
def _loop() -> Generator[asyncio.AbstractEventLoop]:
    """An event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="threadkeep-chat", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_all() -> None:
    loop = asyncio.get_running_loop()
    await end_tasks(*(asyncio.all_tasks() - {asyncio.current_task()}))
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def _clean(text: str) -> str:
    return _CONTROLS.sub("", text)


def _short(text: str) -> str:
    return text if len(text) <= MOST_ARGUMENT_CHARACTERS else f"{text[:MOST_ARGUMENT_CHARACTERS]}…"
