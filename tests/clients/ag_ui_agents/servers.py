"""Agents of three frameworks behind their own AG-UI servers, as their documentation begins them.

python -I servers.py URL-OF-A-SCRIPTED-MODEL
"""

import os
import socket
import sys

os.environ |= {"AGNO_TELEMETRY": "false", "OPENAI_API_KEY": "scripted"}

import uvicorn
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from agno.agent import Agent as AgnoAgent
from agno.models.openai import OpenAIChat
from agno.os import AgentOS
from agno.os.interfaces.agui import AGUI
from fastapi import FastAPI, Request, Response
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.ui.ag_ui import AGUIAdapter

MODEL_URL = sys.argv[1]

# pydantic-ai

shop = Agent(
    OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=MODEL_URL, api_key="scripted")),
    output_type=[str, DeferredToolRequests],
)


def price(order_id: int) -> str:
    """Says what an order costs."""
    return f"{order_id * 3} EUR"


shop.tool_plain(price)


@shop.tool_plain(requires_approval=True)
def refund(order_id: int) -> str:
    """Refunds an order."""
    return f"refunded {order_id}"


# LangGraph


def decide(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Asks a person, and says what they said."""
    answer = interrupt("Refund order 7?")
    return {"messages": [AIMessage(f"You said {answer}.")]}


graph = StateGraph(MessagesState).add_node("decide", decide).add_edge(START, "decide")
decider = graph.compile(checkpointer=InMemorySaver())

# Agno

agno = AgnoAgent(name="agno", model=OpenAIChat(id="scripted", base_url=MODEL_URL), tools=[price])

app = FastAPI()


@app.post("/pydantic-ai")
async def run_shop(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=shop)


add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="decider", graph=decider), "/langgraph")
add_langgraph_fastapi_endpoint(
    app, LangGraphAgent(name="decider", graph=decider, emit_interrupt_outcome=True), "/langgraph-1.0"
)
app.mount("/agno", AgentOS(agents=[agno], interfaces=[AGUI(agent=agno)]).get_app())

if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
