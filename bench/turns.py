"""Turns through whole servers: Threadkeep with a model that speaks as it is asked to, and the bare app."""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import msgspec

from bench.client import Clients, Request, request
from bench.servers import NOTHING, TOKEN, TREE, Server, serve, serve_command
from bench.speaker import question


@contextmanager
def serve_with_speaker(
    url: str, *arguments: str, program: Sequence[str] = ("threadkeep",), tree: Path = TREE
) -> Generator[Server]:
    """`threadkeep serve` on a database, with the speaker behind Anthropic's API."""
    speaker = subprocess.Popen([sys.executable, "-m", "bench.speaker"], stdout=subprocess.PIPE, text=True)
    try:
        assert speaker.stdout
        gateway = {
            "THREADKEEP_GATEWAY": "anthropic",
            "THREADKEEP_GATEWAY_URL": speaker.stdout.readline().strip(),
            "THREADKEEP_GATEWAY_API_KEY": "none",
            "THREADKEEP_MODEL": "scripted",
        }
        with serve_command(url, *arguments, program=program, tree=tree, environment=gateway) as server:
            yield server
    finally:
        speaker.terminate()
        speaker.wait()


def serve_bare() -> AbstractContextManager[Server]:
    """The floor: the same frames at the same pace, but nothing read and nothing stored."""
    return serve("bench.bare_stream:create_app", NOTHING)


def ask(conversation_id: str, pieces: int, rate: int) -> Request:
    """Asks Threadkeep for a turn of so many pieces, so many a second."""
    return ask_for(conversation_id, question(pieces, rate))


def ask_for(conversation_id: str, content: str, *, waits: bool = False) -> Request:
    """Sends Threadkeep a message: the answer streams the turn, or waits for its end."""
    path = f"/api/conversations/{conversation_id}/messages{'?wait=true' if waits else ''}"
    return request("POST", path, body=json.dumps({"content": content}).encode(), token=TOKEN)


def ask_bare(pieces: int, rate: int) -> Request:
    """Asks the floor for the same frames."""
    return request("POST", f"/{pieces}/{rate}")


def make_conversations(server: Server, count: int) -> list[str]:
    """New conversations with one agent, by their ids."""
    clients = Clients(server.port, 1)
    agent = _made(clients.ask(request("POST", "/api/agents", body=b'{"name":"Measured"}', token=TOKEN)))
    path = f"/api/agents/{agent}/conversations"
    # With a title, so that no job looks for one.
    asked = request("POST", path, body=b'{"title":"Measured"}', token=TOKEN)
    made = [_made(clients.ask(asked)) for _ in range(count)]
    clients.close()
    return made


def _made(body: bytes) -> str:
    return msgspec.json.decode(body)["id"]


def signed_in(server: Server) -> httpx.Client:
    """A client for what is not measured."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(
        base_url=f"http://127.0.0.1:{server.port}", headers=headers, trust_env=False, timeout=600
    )
