"""pydantic-ai on DBOS, whose durable workflows need no server: ours is a page of Starlette around one."""

import os
from collections.abc import Sequence
from typing import Any

from bench.peers.contender import UVICORN, Api, Launch, Place
from bench.peers.shops import program
from bench.peers.shops.shop import ShopServer


class DbosShop(ShopServer):
    """A workflow that runs the agent, waits for the approval, and runs it again."""

    title = "pydantic-ai on DBOS"
    lock = "pydantic_ai"
    packages = ("pydantic-ai-slim", "dbos")

    def __init__(self) -> None:
        self._workflow = ""

    def launch(self, place: Place) -> Launch:
        return Launch([str(place.python), *UVICORN, "--port", str(place.port), f"{__name__}:create_app"])

    def ask(self, api: Api, text: str) -> None:
        self._workflow = api.post("/visits", {"text": text})["id"]

    def waits(self, api: Api) -> bool:
        return bool(self._visit(api)["waits"])

    def approve(self, api: Api) -> None:
        api.post(f"/visits/{self._workflow}/approve", {})

    def texts(self, api: Api) -> Sequence[str]:
        visit = self._visit(api)
        return [str(visit["status"]), *filter(None, [visit["text"]])]

    def _visit(self, api: Api) -> dict[str, Any]:
        return api.get(f"/visits/{self._workflow}")


def create_app() -> Any:
    """For uvicorn."""
    from contextlib import asynccontextmanager

    from dbos import DBOS
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
    from pydantic_ai.durable_exec.dbos import DBOSDurability
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    DBOS(config={"name": "shop", "system_database_url": "sqlite:///dbos.sqlite", "run_admin_server": False})

    async def show(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=os.environ[program.MODEL_URL]))
    agent = Agent(
        model,
        name="shop",
        instructions="You run a shop.",
        output_type=[str, DeferredToolRequests],
        capabilities=[DBOSDurability(event_stream_handler=show)],
    )
    for tool in (program.price, program.stock, program.note):
        agent.tool_plain(DBOS.step()(tool))
    agent.tool_plain(requires_approval=True)(DBOS.step()(program.refund))

    @DBOS.workflow()
    async def visit(text: str) -> str:
        result = await agent.run(text)
        while isinstance(asked := result.output, DeferredToolRequests):
            await DBOS.set_event_async("waits", True)
            await DBOS.recv_async("approval", timeout_seconds=600)
            await DBOS.set_event_async("waits", False)
            approved = DeferredToolResults(approvals={it.tool_call_id: True for it in asked.approvals})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=approved)
        return str(result.output)

    async def begin(request: Any) -> Any:
        handle = await DBOS.start_workflow_async(visit, (await request.json())["text"])
        return JSONResponse({"id": handle.workflow_id})

    async def approve(request: Any) -> Any:
        await DBOS.send_async(request.path_params["id"], True, "approval")
        return JSONResponse({})

    async def look(request: Any) -> Any:
        id_ = request.path_params["id"]
        handle = await DBOS.retrieve_workflow_async(id_)
        status = (await handle.get_status()).status
        waits = status == "PENDING" and await DBOS.get_event_async(id_, "waits", timeout_seconds=0)
        text = await handle.get_result() if status == "SUCCESS" else ""
        return JSONResponse({"status": status, "waits": bool(waits), "text": text})

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        DBOS.launch()
        yield
        DBOS.destroy()

    routes = [
        Route("/visits", begin, methods=["POST"]),
        Route("/visits/{id}", look),
        Route("/visits/{id}/approve", approve, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


SHOP = DbosShop()
