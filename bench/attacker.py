"""Somebody who attacks a server: their connection, and what they prepare."""

import http.client
import io
import json
import os
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User
from threadkeep.http.sign_in.access_tokens import issue_token

SECRET = "the-benchmarks-own-secret-used-nowhere-else"
MALLORY = f"mallory-{os.getpid()}"
"""Several attackers are several users: one alone imports one file at a time."""
TOKEN_S = 3600
LONG = 30_000
"""The messages of a long conversation."""
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

    def begin(self, method: str, path: str, body: Any = None) -> None:
        """Asks without waiting for the answer."""
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, self._headers)

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
        return self._take_in("conversations.json", json.dumps([talk]))

    def take_in_own(self, lines: Iterable[Mapping[str, Any]]) -> str | None:
        """Imports lines of our own format; the id of the conversation, if it arrived."""
        return self._take_in("data.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))

    def _take_in(self, name: str, content: str) -> str | None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, content)
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
        id_ = self.take_in(*said(count))
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


def said(count: int) -> list[dict[str, str]]:
    """Messages of a long conversation, as Claude exports them."""
    return [
        {"uuid": f"m{it}", "sender": "human" if it % 2 == 0 else "assistant", "text": f"Sentence {it}."}
        for it in range(count)
    ]


def again(*values: Any) -> Iterator[Any]:
    """These values, again and again."""
    while True:
        yield from values
