"""The end of the scripted model."""

import gc
import socket
import sys
import threading
from contextlib import suppress

import pytest

from threadkeep.testing import ScriptedModel

MOST_SOCKETS = 500


def test_client_that_connects_while_the_model_ends_leaves_no_open_connection(
    monkeypatch: pytest.MonkeyPatch,
):
    sockets: list[socket.socket] = []
    left: list[str] = []

    def note(found: "sys.UnraisableHookArgs") -> None:
        left.append(str(found.exc_value))

    monkeypatch.setattr("sys.unraisablehook", note)

    def connect(address: tuple[str, int]) -> None:
        with suppress(OSError):
            while len(sockets) < MOST_SOCKETS:
                sockets.append(socket.create_connection(address, timeout=1))

    with ScriptedModel() as model:
        host, port = model.url.removeprefix("http://").split(":")
        connecting = threading.Thread(target=connect, args=((host, int(port)),))
        connecting.start()
        while not sockets:
            pass
    connecting.join()
    for it in sockets:
        it.close()
    gc.collect()
    assert left == []
