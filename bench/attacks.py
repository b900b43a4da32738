"""What one user does to a server to be felt by others. Each kind is done again and again until it is ended.

python -m bench.attacks KIND PORT     (`python -m bench.hostile` starts them)
"""

import http.client
import io
import json
import os
import socket
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bench.hostile_files import docx_bomb
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.http.sign_in.access_tokens import issue_token

SECRET = "the-benchmarks-own-secret-used-nowhere-else"
MALLORY = f"mallory-{os.getpid()}"
"""Several attackers are several users: one alone imports one file at a time."""
TOKEN_S = 3600
CONNECTIONS = 300
LONG = 30_000
"""The messages of a long conversation."""
HUGE_WORD = "zebra " + "a" * 200_000 + "ational"
EMPTY_ARRAYS = b"[" + b"[]," * 3_400_000 + b"[]]"
AT = 1_800_000_000_000
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def token(user: str) -> str:
    """Signs a user in."""
    return issue_token(SECRET, User(UserId(user)), TOKEN_S)


class Caller:
    """A user's one connection."""

    def __init__(self, port: int, user: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {token(user)}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Asks, and reads the answer to its end."""
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {**self._headers, **headers})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def begin(self, method: str, path: str) -> None:
        """Asks without waiting for the answer."""
        self._connection.request(method, path, None, self._headers)

    def finish(self) -> None:
        """Reads the answer to what was begun."""
        self._connection.getresponse().read()

    def make(self, method: str, path: str, body: Any = None) -> Any:
        """Asks for what must work."""
        status, answer = self.call(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:500]!r}")
        return json.loads(answer)

    def take_in(self, *messages: Mapping[str, Any]) -> str | None:
        """Imports a conversation of these messages, as Claude exports them; its id, if it arrived."""
        talk = {"uuid": f"talk-{time.time_ns()}", "name": "Long", "chat_messages": messages}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("conversations.json", json.dumps([talk]))
        part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.zip"\r\n\r\n%b\r\n--b--\r\n'
        status, answer = self.call("POST", "/api/imports", part % packed.getvalue(), **FORM)
        if status != 202:
            return None
        path = f"/api/imports/{json.loads(answer)['id']}"
        while (run := self.make("GET", path))["status"] == "RUNNING":
            time.sleep(0.2)
        return next((it["id"] for it in run["conversations"]), None)

    def long_conversation(self, count: int = LONG) -> tuple[str, str]:
        """A conversation of many messages, and the id of its last one."""
        id_ = self.take_in(*_said(count))
        if id_ is None:
            raise RuntimeError("the long conversation was not imported")
        page = self.make("GET", f"/api/conversations/{id_}/messages?order=desc&limit=1")
        return id_, page["items"][0]["id"]

    def conversation(self, texts: Sequence[str]) -> str:
        """A new conversation in which this was said, recorded as another engine's runs."""
        agent = self.make("POST", "/api/agents", {"name": "Measured"})["id"]
        conversation: str = self.make("POST", f"/api/agents/{agent}/conversations", {})["id"]
        for number, text in enumerate(texts):
            run = {"runId": f"run-{number}", "at": AT + number}
            events = [
                {**run, "id": f"{number}-a", "type": "ExecutionStarted", "input": text},
                {**run, "id": f"{number}-b", "type": "ExecutionCompleted", "output": "Understood."},
            ]
            self.make("POST", f"/api/conversations/{conversation}/executions", {"events": events})
        return conversation


def begin() -> None:
    """Says that all is prepared, and the attack begins."""
    print("begins", flush=True)


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
    for size in _again(10_000_000, 60_000_000):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + b"a" * size + b"\r\n\r\n")
            connection.recv(65536)


def bodies(port: int) -> None:
    """10 MB of empty arrays, and of nesting."""
    begin()
    for body in _again(EMPTY_ARRAYS, b"[" * 10_000_000):
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
        mallory.take_in(*_said(LONG))
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
    for method, path, body in _again(
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
    id_ = mallory.take_in(*_said(1), {"uuid": "r", "sender": "assistant", "text": text})
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
    id_ = mallory.take_in(*_said(1), *replies)
    callers = [Caller(port, MALLORY) for _ in range(7)]
    begin()
    while True:
        for caller in callers:
            caller.begin("GET", f"/api/conversations/{id_}/report?format=html")
        for caller in callers:
            caller.finish()


def items(port: int) -> None:
    """A list of items that begins as the conversation ends, with tens of thousands of parts."""
    mallory = Caller(port, MALLORY)
    part = {"type": "input_text", "text": "a"}
    sent = [{"type": "message", "role": "user", "content": [part] * 29_000}]
    sent += [{"type": "message", "role": "user", "content": "b"}] * 19
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
}


def _said(count: int) -> list[dict[str, str]]:
    return [
        {"uuid": f"m{it}", "sender": "human" if it % 2 == 0 else "assistant", "text": f"Sentence {it}."}
        for it in range(count)
    ]


def _again(*values: Any) -> Iterator[Any]:
    while True:
        yield from values


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
    ATTACKS[sys.argv[1]](int(sys.argv[2]))
