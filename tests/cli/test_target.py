"""How commands leave the Threadkeep that they talk to."""

import asyncio
import signal
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.cli.test_terminal import WAIT_S, person
from threadkeep.cli import target
from threadkeep.cli.target import leave
from threadkeep.client.blocking import LoopThread


def test_leaving_closes_the_connections_and_ignores_ctrl_c():
    closed: list[str] = []
    stack, loop = AsyncExitStack(), LoopThread()
    stack.callback(closed.append, "connection")
    leave(loop, stack)
    assert closed == ["connection"]
    assert loop.is_closed
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_connection_that_does_not_close_keeps_nobody_and_ctrl_c_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(target, "LEAVE_S", 0.05)
    monkeypatch.setattr(target, "LEAVE_OWN_S", 0.05)
    stack, loop = AsyncExitStack(), LoopThread()
    stack.push_async_callback(asyncio.Event().wait)
    leave(loop, stack)
    assert not loop.is_closed
    assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    loop.close()


def test_work_that_cannot_be_cancelled_keeps_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(target, "LEAVE_S", 0.05)
    loop = LoopThread()
    working = loop.start(asyncio.to_thread(time.sleep, 1))
    leave(loop, AsyncExitStack())
    assert not loop.is_closed
    working.cancel()
    loop.close()


def test_person_leaves_a_server_that_does_not_respond(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        with person(tmp_path, "--url", f"http://127.0.0.1:{listener.getsockname()[1]}") as somebody:
            silent, _ = listener.accept()
            with silent:
                somebody.presses_ctrl_c()
                assert somebody.leaves() == 0
