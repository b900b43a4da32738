"""AgentOS with the shop as an agent of Agno, whose `refund` requires confirmation."""

import json
import os
import uuid
from collections.abc import Sequence
from typing import Any

from bench.peers.contender import UVICORN, Api, Launch, Place
from bench.peers.shops import program
from bench.peers.shops.form import post_form
from bench.peers.shops.shop import ShopServer


class AgnoShop(ShopServer):
    """AgentOS with SqliteDb."""

    title = "Agno's AgentOS"
    lock = "agno"
    packages = ("agno", "openai")

    def __init__(self) -> None:
        self._session = ""

    def launch(self, place: Place) -> Launch:
        return Launch([str(place.python), *UVICORN, "--port", str(place.port), f"{__name__}:create_app"])

    def ask(self, api: Api, text: str) -> None:
        self._session = str(uuid.uuid4())
        form = {"message": text, "stream": "true", "session_id": self._session, "user_id": "local"}
        post_form(api, "/agents/shop/runs", form)

    def waits(self, api: Api) -> bool:
        return any(it.get("status") == "PAUSED" for it in self._runs(api))

    def approve(self, api: Api) -> None:
        (run,) = (it for it in self._runs(api) if it.get("status") == "PAUSED")
        tools = [it for it in run["tools"] if it.get("requires_confirmation")]
        confirmed = json.dumps([{**it, "confirmed": True} for it in tools])
        form = {"tools": confirmed, "session_id": self._session, "user_id": "local", "stream": "true"}
        post_form(api, f"/agents/shop/runs/{run['run_id']}/continue", form)

    def texts(self, api: Api) -> Sequence[str]:
        return [text for it in self._runs(api) for text in (it.get("run_input"), it.get("content")) if text]

    def _runs(self, api: Api) -> list[dict[str, Any]]:
        try:
            return api.get(f"/sessions/{self._session}/runs?type=agent&user_id=local")
        except RuntimeError as error:
            if ": 404 " in str(error):
                return []
            raise


def create_app() -> Any:
    """For uvicorn."""
    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.openai import OpenAIChat
    from agno.os import AgentOS
    from agno.tools import tool

    db = SqliteDb(db_file="agno.db")
    agent = Agent(
        id="shop",
        model=OpenAIChat(id="scripted", base_url=os.environ[program.MODEL_URL]),
        instructions="You run a shop.",
        tools=[program.price, program.stock, program.note, tool(requires_confirmation=True)(program.refund)],
        db=db,
        add_history_to_context=True,
        telemetry=False,
    )
    return AgentOS(agents=[agent], db=db, telemetry=False).get_app()


SHOP = AgnoShop()
