"""What many write themselves: FastAPI, the official openai SDK, and SQLite when the reply is complete.

Best case: one shared AsyncOpenAI client, a StreamingResponse of ready lines, no validation of the pieces, one
connection to SQLite (WAL, synchronous=FULL) in a thread, one commit for the question and the reply together;
uvicorn with uvloop and httptools.
"""

import asyncio
import json
import os
import sqlite3
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.peers.contender import UVICORN, Api, Conversation, Launch, Place, Said, ServerContender, post

MODEL_URL, DATABASE = "BENCH_MODEL_URL", "chat.db"


class Handwritten(ServerContender):
    """The server below."""

    title = "FastAPI + openai SDK, by hand"
    lock = "handwritten"
    packages = ("fastapi", "openai", "uvicorn", "uvloop")

    def launch(self, place: Place) -> Launch:
        command = [str(place.python), *UVICORN, "--port", str(place.port), f"{__name__}:create_app"]
        return Launch(command, {MODEL_URL: f"{place.model_url}/v1"})

    def converse(self, api: Api) -> Conversation:
        return Conversation(str(uuid.uuid4()))

    def question(self, conversation: Conversation, text: str) -> bytes:
        return post(f"/conversations/{conversation.id}/messages", json.dumps({"content": text}).encode())

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        return [
            Said(it["role"] == "user", it["content"]) for it in api.get(f"/conversations/{conversation_id}")
        ]


class _Messages:
    """The table of messages, in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._connection = self._thread.submit(self._open).result()

    @staticmethod
    def _open() -> sqlite3.Connection:
        connection = sqlite3.connect(DATABASE)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(
            """CREATE TABLE IF NOT EXISTS messages
            (id INTEGER PRIMARY KEY, conversation TEXT, role TEXT, content TEXT)"""
        )
        connection.execute("CREATE INDEX IF NOT EXISTS by_conversation ON messages (conversation, id)")
        return connection

    async def of(self, conversation: str) -> list[dict[str, str]]:
        def read() -> list[dict[str, str]]:
            rows = self._connection.execute(
                "SELECT role, content FROM messages WHERE conversation = ? ORDER BY id", (conversation,)
            )
            return [{"role": role, "content": content} for role, content in rows]

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)

    async def add(self, conversation: str, question: str, reply: str) -> None:
        def write() -> None:
            with self._connection:
                self._connection.executemany(
                    "INSERT INTO messages (conversation, role, content) VALUES (?, ?, ?)",
                    [(conversation, "user", question), (conversation, "assistant", reply)],
                )

        await asyncio.get_running_loop().run_in_executor(self._thread, write)


def create_app() -> Any:
    """For uvicorn."""
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse
    from openai import AsyncOpenAI
    from pydantic import BaseModel

    app = FastAPI()
    model = AsyncOpenAI(base_url=os.environ[MODEL_URL])
    messages = _Messages()

    class Question(BaseModel):
        content: str

    async def stream(conversation: str, content: str) -> Any:
        context = [*await messages.of(conversation), {"role": "user", "content": content}]
        chunks = await model.chat.completions.create(model="scripted", messages=context, stream=True)
        reply: list[str] = []
        async for chunk in chunks:
            text = chunk.choices[0].delta.content
            if text:
                reply.append(text)
                yield f"data: {json.dumps({'text': text})}\n\n"
        await messages.add(conversation, content, "".join(reply))
        yield "data: [DONE]\n\n"

    @app.post("/conversations/{conversation}/messages")
    async def ask(conversation: str, question: Question) -> StreamingResponse:
        return StreamingResponse(stream(conversation, question.content), media_type="text/event-stream")

    @app.get("/conversations/{conversation}")
    async def show(conversation: str) -> list[dict[str, str]]:
        return await messages.of(conversation)

    return app


CONTENDER = Handwritten()
