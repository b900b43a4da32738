"""Agno: an agent in AgentOS with SqliteDb, as its guide to serving an agent as an API shows it.

Best case: one streamed run a turn, no memories, summaries or tools; history of the session in the context;
telemetry off; SQLite with write-ahead logging; uvicorn with uvloop and httptools. The run is stored at its
end, which is Agno's default and costs least.
"""

import os
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from bench.peers.contender import UVICORN, Api, Conversation, Launch, Place, Said, ServerContender, post
from bench.peers.sqlite_files import use_wal

MODEL_URL, DATABASE = "BENCH_MODEL_URL", "agno.db"


class Agno(ServerContender):
    """AgentOS with one agent."""

    title = "Agno"
    lock = "agno"
    packages = ("agno", "fastapi", "openai", "uvicorn", "uvloop")

    def launch(self, place: Place) -> Launch:
        use_wal(place.folder / DATABASE)
        command = [str(place.python), *UVICORN, "--port", str(place.port), f"{__name__}:create_app"]
        return Launch(command, {MODEL_URL: f"{place.model_url}/v1"})

    def converse(self, api: Api) -> Conversation:
        return Conversation(str(uuid.uuid4()))

    def question(self, conversation: Conversation, text: str) -> bytes:
        form = {"message": text, "stream": "true", "session_id": conversation.id, "user_id": "local"}
        return post("/agents/chat/runs", urlencode(form).encode(), "application/x-www-form-urlencoded")

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        runs = api.get(f"/sessions/{conversation_id}/runs?type=agent&user_id=local")
        return [said for run in runs for said in _said(run)]


def _said(run: dict[str, Any]) -> Sequence[Said]:
    question, reply = Said(True, run.get("run_input") or ""), Said(False, run.get("content") or "")
    return [it for it in (question, reply) if it.text]


def create_app() -> Any:
    """For uvicorn."""
    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.openai import OpenAIChat
    from agno.os import AgentOS

    model = OpenAIChat(id="scripted", base_url=os.environ[MODEL_URL])
    db = SqliteDb(db_file=DATABASE)
    agent = Agent(id="chat", model=model, db=db, add_history_to_context=True, telemetry=False)
    return AgentOS(agents=[agent], telemetry=False).get_app()


CONTENDER = Agno()
