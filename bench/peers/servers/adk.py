"""Google's ADK: its FastAPI application (`get_fast_api_app`) with one agent and DatabaseSessionService on
SQLite.

Best case: the Gemini API, which is ADK's own (through LiteLLM it would pay for a second client); streaming
over `/run_sse`; no tools; traces off; SQLite with write-ahead logging; uvicorn with uvloop and httptools. Not
its SqliteSessionService: with 20 turns at once that one loses turns to "database is locked". Here a
turn waits for the others, up to ten minutes for a connection.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.contender import UVICORN, Api, Conversation, Launch, Place, Said, ServerContender, post
from bench.peers.sqlite_files import use_wal

DATABASE, AGENT = "adk.db", "chat"
SESSIONS = f"/apps/{AGENT}/users/local/sessions"


class Adk(ServerContender):
    """Its API server."""

    title = "ADK"
    lock = "adk"
    packages = ("google-adk", "google-genai", "fastapi", "uvicorn", "uvloop")

    def launch(self, place: Place) -> Launch:
        agent = place.folder / "agents" / AGENT / "agent.py"
        agent.parent.mkdir(parents=True, exist_ok=True)
        agent.write_text(f"from {__name__} import make_agent\n\nroot_agent = make_agent()\n")
        (agent.parent / "__init__.py").write_text("from . import agent\n")
        use_wal(place.folder / DATABASE)
        command = [str(place.python), *UVICORN, "--port", str(place.port), f"{__name__}:create_app"]
        return Launch(command, {"GOOGLE_GEMINI_BASE_URL": place.model_url})

    def converse(self, api: Api) -> Conversation:
        return Conversation(api.post(SESSIONS, {})["id"])

    def question(self, conversation: Conversation, text: str) -> bytes:
        asked = {
            "appName": AGENT,
            "userId": "local",
            "sessionId": conversation.id,
            "newMessage": {"role": "user", "parts": [{"text": text}]},
            "streaming": True,
        }
        return post("/run_sse", json.dumps(asked).encode())

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        events = api.get(f"{SESSIONS}/{conversation_id}")["events"]
        return [Said(it["author"] == "user", _text(it)) for it in events]


def _text(event: dict[str, Any]) -> str:
    parts = (event.get("content") or {}).get("parts") or []
    return "".join(part.get("text") or "" for part in parts)


def make_agent() -> Any:
    """What the server finds in its folder of agents."""
    from google.adk.agents import Agent

    return Agent(name=AGENT, model="gemini-2.5-flash", instruction="Answer.")


def create_app() -> Any:
    """For uvicorn."""
    from google.adk.cli.fast_api import get_fast_api_app

    uri = f"sqlite+aiosqlite:///{Path.cwd() / DATABASE}?timeout=60"
    return get_fast_api_app(
        agents_dir=str(Path.cwd() / "agents"),
        session_service_uri=uri,
        session_db_kwargs={"pool_timeout": 600},
        web=False,
    )


CONTENDER = Adk()
