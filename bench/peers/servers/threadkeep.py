"""Threadkeep as a user runs it: `threadkeep serve` with its defaults, on SQLite in its data folder.

Best case: sign-in off (the default on this machine's own address), no line in the log for every request, and
no allowance of one user, who here is everybody. The user's message is stored before the model is asked, every
piece before it is shown.
"""

import json
from collections.abc import Sequence

from bench.peers.contender import Api, Conversation, Launch, Place, Said, ServerContender, post


class Threadkeep(ServerContender):
    """The server of this repository."""

    title = "Threadkeep"
    packages = ("threadkeep", "uvicorn", "uvloop")

    def launch(self, place: Place) -> Launch:
        settings = {
            "THREADKEEP_GATEWAY": "openai",
            "THREADKEEP_GATEWAY_URL": place.model_url,
            "THREADKEEP_GATEWAY_API_KEY": "none",
            "THREADKEEP_MODEL": "scripted",
            "THREADKEEP_LOG_LEVEL": "warning",
            "THREADKEEP_USER_RUNNING_TURNS": "0",
            "THREADKEEP_USER_TURNS_PER_MINUTE": "0",
        }
        program = str(place.python.parent / "threadkeep")
        options = ("--data", str(place.folder / "data"), "--port", str(place.port))
        return Launch([program, "serve", *options], settings)

    def converse(self, api: Api) -> Conversation:
        (agent, *_) = api.get("/api/agents")["items"]
        return Conversation(api.post(f"/api/agents/{agent['id']}/conversations", {})["id"])

    def question(self, conversation: Conversation, text: str) -> bytes:
        path = f"/api/conversations/{conversation.id}/messages"
        return post(path, json.dumps({"content": text}).encode())

    def history(self, api: Api, conversation_id: str) -> Sequence[Said]:
        messages = api.get(f"/api/conversations/{conversation_id}/messages")["items"]
        return [Said(it["role"] == "user", it["content"]) for it in messages]


CONTENDER = Threadkeep()
