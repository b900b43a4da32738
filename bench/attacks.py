"""What one user does to a server to be felt by others. Each kind is done again and again until it is ended.

python -m bench.attacks KIND PORT     (`python -m bench.hostile` starts them)
"""

import http.client
import json
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from bench import attacks_on_programs, attacks_on_turns
from bench.attacker import LONG, MALLORY, Caller, again, begin, said
from bench.hostile_files import docx_bomb
from threadkeep.protocols.openai.added_items import MOST_PARTS_OF_AN_ITEM

CONNECTIONS = 300
HUGE_WORD = "zebra " + "a" * 200_000 + "ational"
EMPTY_ARRAYS = b"[" + b"[]," * 3_400_000 + b"[]]"
MOST_S = 1800
"""An attacker ends by then, even if nobody is left to end it."""


def search(port: int) -> None:
    """Highlighting one huge word."""
    mallory = Caller(port, MALLORY)
    mallory.conversation([HUGE_WORD])
    begin()
    while True:
        mallory.call("GET", "/api/search?q=zebra")


def headers(port: int) -> None:
    """Headers of 10 and of 60 MB, without a sign-in."""
    begin()
    for size in again(10_000_000, 60_000_000):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + b"a" * size + b"\r\n\r\n")
            connection.recv(65536)


def bodies(port: int) -> None:
    """10 MB of empty arrays, and of nesting."""
    begin()
    for body in again(EMPTY_ARRAYS, b"[" * 10_000_000):
        with suppress(OSError, http.client.HTTPException):
            Caller(port, MALLORY).call("POST", "/api/chat", body)


def documents(port: int) -> None:
    """Two files of 149 KB that unpack to gigabytes."""
    mallory = Caller(port, MALLORY)
    path = f"/api/agents/{mallory.make('POST', '/api/agents', {'name': 'Measured'})['id']}/documents"
    file = docx_bomb()
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%d.docx"\r\n\r\n%b\r\n'
    body = part % (1, file) + part % (2, file) + b"--b--\r\n"
    begin()
    while True:
        mallory.call("POST", path, body, **{"Content-Type": "multipart/form-data; boundary=b"})
        _wait_until_read(mallory, path)


def slow(port: int) -> None:
    """Hundreds of connections with slow headers, slow bodies, or nothing at all."""
    beginnings = (
        b"GET /healthz HTTP/1.1\r\nHost: ",
        b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n",
        b"",
    )
    sent_by = [beginnings[number % len(beginnings)] for number in range(CONNECTIONS)]
    connections = [_dial(port, beginning) for beginning in sent_by]
    begin()
    while True:
        for number, beginning in enumerate(sent_by):
            if _is_closed(connections[number], beginning):
                connections[number].close()
                connections[number] = _dial(port, beginning)
        time.sleep(0.05)


def tools(port: int) -> None:
    """A tool whose schema refers to itself thousands of times."""
    mallory = Caller(port, MALLORY)
    schema = {"type": "object", "": [0] * 15_500, "x": [{"$ref": "#//0"}] * 1_950}
    tool = {"type": "function", "name": "t", "parameters": schema}
    begin()
    while True:
        mallory.call("POST", "/v1/responses", {"model": "Assistant", "input": "hi", "tools": [tool] * 3})


def endless_import(port: int) -> None:
    """A file of 12 kB whose calls and results don't fit each other."""
    mallory = Caller(port, MALLORY)
    uses = [{"type": "tool_use", "name": "a"}] * 60_000 + [{"type": "tool_result", "name": "b"}] * 60_000
    begin()
    while True:
        mallory.take_in({"uuid": "m", "sender": "assistant", "content": uses})
        time.sleep(0.2)


def long_import(port: int) -> None:
    """A small file with a conversation of tens of thousands of messages."""
    mallory = Caller(port, MALLORY)
    begin()
    while True:
        mallory.take_in(*said(LONG))
        time.sleep(0.2)


def forks(port: int) -> None:
    """Forks and purges of a long conversation."""
    mallory = Caller(port, MALLORY)
    id_, last = mallory.long_conversation()
    begin()
    while True:
        status, answer = mallory.call("POST", f"/api/conversations/{id_}/fork", {"messageId": last})
        if status == 201:
            mallory.call("DELETE", f"/api/conversations/{json.loads(answer)['id']}?purge=true")


def histories(port: int) -> None:
    """A long conversation as other front ends load it, shared and exported."""
    mallory = Caller(port, MALLORY)
    id_, last = mallory.long_conversation()
    begin()
    for method, path, body in again(
        ("GET", f"/api/ai-sdk/chat/{id_}", None),
        ("GET", f"/api/conversations/{id_}/context?limit=200", None),
        ("POST", f"/api/conversations/{id_}/shares", {"messageId": last}),
        ("GET", f"/api/conversations/{id_}/export?format=md", None),
    ):
        mallory.call(method, path, body)


def previews(port: int) -> None:
    """A link to a conversation of megabytes, as chat programs fetch it by themselves."""
    mallory = Caller(port, MALLORY)
    text = "[a](b) **c** `d` " * 400_000
    id_ = mallory.take_in(*said(1), {"uuid": "r", "sender": "assistant", "text": text})
    page = mallory.make("GET", f"/api/conversations/{id_}/messages?order=desc&limit=1")
    share = mallory.make("POST", f"/api/conversations/{id_}/shares", {"messageId": page["items"][0]["id"]})
    path = "/s/" + share["url"].rpartition("/")[2]
    begin()
    while True:
        mallory.call("GET", path, **{"Authorization": ""})


def reports(port: int) -> None:
    """Seven reports at once with tens of thousands of footnotes."""
    mallory = Caller(port, MALLORY)
    note = "".join(f"[^{number}]" for number in range(25_000))
    replies = [{"uuid": f"r{it}", "sender": "assistant", "text": note} for it in range(3)]
    id_ = mallory.take_in(*said(1), *replies)
    callers = [Caller(port, MALLORY) for _ in range(7)]
    begin()
    while True:
        for caller in callers:
            caller.begin("GET", f"/api/conversations/{id_}/report?format=html")
        for caller in callers:
            caller.finish()


def items(port: int) -> None:
    """A list of items that begins as the conversation ends, with twenty thousand parts."""
    mallory = Caller(port, MALLORY)
    part = {"type": "input_text", "text": "a"}
    sent = [{"type": "message", "role": "user", "content": [part] * MOST_PARTS_OF_AN_ITEM}] * 20
    id_ = mallory.make("POST", "/v1/conversations", {"items": sent})["id"]
    begin()
    while True:
        mallory.call("POST", f"/v1/conversations/{id_}/items", {"items": sent})


def pages(port: int) -> None:
    """Pages of messages of megabytes."""
    mallory = Caller(port, MALLORY)
    said = [{"uuid": f"p{it}", "sender": "human", "text": "a" * 1_000_000} for it in range(25)]
    id_ = mallory.take_in(*said)
    begin()
    while True:
        mallory.call("GET", f"/api/conversations/{id_}/messages?limit=200")


def whole_bodies(port: int) -> None:
    """Requests as large as they may be, with a file as text in them."""
    mallory = Caller(port, MALLORY)
    body = json.dumps({"model": "Assistant", "messages": [{"role": "user", "content": "a" * 60_000_000}]})
    begin()
    while True:
        with suppress(OSError, http.client.HTTPException):
            mallory.call("POST", "/v1/chat/completions", body.encode())
            mallory = Caller(port, MALLORY)


ATTACKS: dict[str, Callable[[int], None]] = {
    "search": search,
    "headers": headers,
    "bodies": bodies,
    "documents": documents,
    "slow": slow,
    "tools": tools,
    "endless-import": endless_import,
    "long-import": long_import,
    "forks": forks,
    "histories": histories,
    "previews": previews,
    "reports": reports,
    "items": items,
    "pages": pages,
    "whole-bodies": whole_bodies,
    **attacks_on_turns.ATTACKS,
    **attacks_on_programs.ATTACKS,
}


def _dial(port: int, beginning: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    with suppress(OSError):
        connection.sendall(beginning)
    return connection


def _is_closed(connection: socket.socket, beginning: bytes) -> bool:
    """Sends a byte where something was begun; whether the server has closed it."""
    try:
        if beginning:
            connection.send(b"a")
        return connection.recv(65536, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _wait_until_read(caller: Caller, path: str) -> None:
    while b'"processing"' in caller.call("GET", path)[1]:
        time.sleep(0.2)


if __name__ == "__main__":
    signal.alarm(MOST_S)
    ATTACKS[sys.argv[1]](int(sys.argv[2]))
