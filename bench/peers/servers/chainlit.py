"""Chainlit: `chainlit run --headless` with its SQLAlchemy data layer on SQLite, which keeps threads and
steps.

Best case: the openai SDK called in `on_message`, each piece passed to `Message.stream_token`; one websocket
for a conversation, opened before it is measured; no page asked for, no line in the log for every request;
SQLite with write-ahead logging and an index of a thread's steps; uvicorn finds uvloop and httptools in the
environment. It keeps nothing without a signed-in user, so a header signs everybody in as one.
"""

import base64
import json
import logging
import os
import re
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.peers.contender import Api, Conversation, Launch, Place, Said, ServerContender, connect
from bench.peers.sqlite_files import use_wal

MODEL_URL, DATABASE = "BENCH_MODEL_URL", "chainlit.db"

_PING = re.compile(rb"\x89\x04(.{4})", re.DOTALL)

# The tables that its data layer expects, for SQLite, which needs no types.
TABLES = """
    CREATE TABLE IF NOT EXISTS users (id PRIMARY KEY, identifier UNIQUE, metadata, createdAt);
    CREATE TABLE IF NOT EXISTS threads
        (id PRIMARY KEY, createdAt, name, userId, userIdentifier, tags, metadata);
    CREATE TABLE IF NOT EXISTS steps
        (id PRIMARY KEY, name, type, threadId, parentId, streaming, waitForAnswer, isError, metadata, tags,
        input, output, createdAt, command, modes, start, "end", generation, showInput, language, indent,
        defaultOpen, autoCollapse, icon);
    CREATE TABLE IF NOT EXISTS elements
        (id PRIMARY KEY, threadId, type, chainlitKey, url, objectKey, name, display, size, language, page,
        autoPlay, playerConfig, forId, mime, props);
    CREATE TABLE IF NOT EXISTS feedbacks (id PRIMARY KEY, forId, threadId, value, comment);
    CREATE INDEX IF NOT EXISTS steps_of_a_thread ON steps (threadId)"""


class Chainlit(ServerContender):
    """Its own server, over Socket.IO."""

    title = "Chainlit"
    lock = "chainlit"
    packages = ("chainlit", "openai", "fastapi", "uvicorn", "uvloop")
    turn_ends = b'["task_end"'

    def launch(self, place: Place) -> Launch:
        (place.folder / "app.py").write_text(f"from {__name__} import set_up\n\nset_up()\n")
        use_wal(place.folder / DATABASE)
        with closing(sqlite3.connect(place.folder / DATABASE)) as connection:
            connection.executescript(TABLES)
        program = str(place.python.parent / "chainlit")
        command = [program, "run", "app.py", "--headless", "--port", str(place.port)]
        secrets = {"CHAINLIT_AUTH_SECRET": "no secret: it is only asked for on this machine's own address"}
        return Launch(command, {MODEL_URL: f"{place.model_url}/v1", **secrets})

    def converse(self, api: Api) -> Conversation:
        if "Cookie" not in api.headers:
            api.post("/auth/header", {})
        conversation = Conversation(str(uuid.uuid4()), connect(api.port))
        assert conversation.connection
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            "GET /ws/socket.io/?EIO=4&transport=websocket HTTP/1.1", "Host: 127.0.0.1",
            f"Origin: http://127.0.0.1:{api.port}", f"Cookie: {api.headers['Cookie']}", "Connection: Upgrade",
            "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "", "",
        )  # fmt: skip
        conversation.connection.sendall("\r\n".join(lines).encode())
        self._await(conversation, b"pingInterval")
        who = {
            "sessionId": conversation.id,
            "threadId": conversation.id,
            "clientType": "webapp",
            "userEnv": "{}",
        }
        conversation.connection.sendall(_frame(f"40{json.dumps(who)}"))
        self._await(conversation, b'40{"sid"')
        conversation.connection.sendall(_frame('42["connection_successful"]'))
        self._await(conversation, b"clear_call_fn")
        return conversation

    def _await(self, conversation: Conversation, mark: bytes) -> None:
        assert conversation.connection
        received = b""
        while mark not in received:
            data = conversation.connection.recv(1 << 16)
            if not data:
                raise RuntimeError(f"no {mark!r} in {received[-300:]!r}")
            received += data

    def question(self, conversation: Conversation, text: str) -> bytes:
        message = {
            "id": str(uuid.uuid4()),
            "threadId": conversation.id,
            "name": "local",
            "type": "user_message",
            "output": text,
            "createdAt": "2026-01-01T00:00:00.000Z",
        }
        payload = {"message": message, "fileReferences": []}
        return _frame(f"42{json.dumps(['client_message', payload])}")

    def answer(self, data: bytes) -> bytes:
        """Engine.IO's pings are texts, uvicorn's are control frames of four bytes that are sent back."""
        pongs = [_frame("3")] if b"\x81\x012" in data else []
        return b"".join(pongs + [b"\x8a\x84" + bytes(4) + it for it in _PING.findall(data)])

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        steps = api.get(f"/project/thread/{conversation_id}")["steps"]
        messages = [it for it in steps if it["type"].endswith("_message")]
        return [
            Said(it["type"] == "user_message", it["output"])
            for it in sorted(messages, key=lambda it: it["createdAt"])
        ]


def _frame(text: str) -> bytes:
    """A text frame of a websocket's client, with a mask that changes nothing."""
    content = text.encode()
    size = len(content)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return b"\x81" + length + bytes(4) + content


def set_up() -> None:
    """What `chainlit run` loads."""
    import chainlit
    from chainlit.data.sql_alchemy import SQLAlchemyDataLayer
    from openai import AsyncOpenAI

    model = AsyncOpenAI(base_url=os.environ[MODEL_URL])
    logging.getLogger("httpx2").setLevel(logging.WARNING)

    @chainlit.header_auth_callback
    async def sign_in(_: Any) -> Any:
        return chainlit.User(identifier="local")

    @chainlit.data_layer
    def keep() -> Any:
        return SQLAlchemyDataLayer(f"sqlite+aiosqlite:///{Path.cwd() / DATABASE}?timeout=60")

    @chainlit.on_message
    async def reply(_: Any) -> None:
        said = chainlit.Message(content="")
        chunks = await model.chat.completions.create(
            model="scripted", messages=chainlit.chat_context.to_openai(), stream=True
        )
        async for chunk in chunks:
            if text := chunk.choices[0].delta.content:
                await said.stream_token(text)
        await said.send()


CONTENDER = Chainlit()
