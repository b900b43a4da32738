"""Runs the agent and records the run in Threadkeep: python record.py notice [--url URL] [--data DIR]

With `--url` the events go to a running server, otherwise to a Threadkeep in this process.
"""

import argparse
import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from research import MODEL, build

from threadkeep import Client, Settings, create_app
from threadkeep.client import Recorder

AGENT = "Lease (LangGraph)"


class Run:
    """Tells Threadkeep of one run of a graph; the graph knows nothing of it, and never waits for it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._id = str(uuid.uuid4())
        self._count = 0
        self._calls: dict[str, dict[str, Any]] = {}

    async def follow(self, graph: Any, question: str) -> None:
        """Runs the graph to its end, whichever that is."""
        self._tell("ExecutionStarted", input=question)
        output, began = "", time.monotonic()
        try:
            state = {"messages": [HumanMessage(question)]}
            async for update in graph.astream(state, stream_mode="updates"):
                for node, change in update.items():
                    took = int((time.monotonic() - began) * 1000)
                    self._tell("NodeCompleted", node=node, durationMs=took, **self._told(change["messages"]))
                    output, began = str(change["messages"][-1].content), time.monotonic()
        except asyncio.CancelledError:
            self._tell("ExecutionCancelled", output=output)
            raise
        except Exception as exc:  # noqa: BLE001 - whatever it was, it is what became of the run
            self._tell("ExecutionFailed", error=f"{type(exc).__name__}: {exc}")
        else:
            self._tell("ExecutionCompleted", output=output, model=MODEL)

    def _told(self, messages: list[AnyMessage]) -> dict[str, Any]:
        """What a node's messages say of it: what it meant to do, what it cost, its tools and its sources."""
        told: dict[str, Any] = {"detail": "", "tools": [], "citations": []}
        for message in messages:
            if isinstance(message, ToolMessage):
                told["tools"].append(self._tool(message))
                told["citations"].append(message.artifact)
            elif isinstance(message, AIMessage):
                told["detail"] = str(message.content) if message.tool_calls else ""
                self._calls |= {str(call["id"]): call["args"] for call in message.tool_calls}
                if used := message.usage_metadata:
                    told["usage"] = {
                        "inputTokens": used["input_tokens"],
                        "outputTokens": used["output_tokens"],
                    }
        return told

    def _tool(self, message: ToolMessage) -> dict[str, Any]:
        return {
            "toolCallId": message.tool_call_id,
            "toolName": message.name,
            "arguments": self._calls[message.tool_call_id],
            "result": message.content,
            "status": "error" if message.status == "error" else "ok",
        }

    def _tell(self, kind: str, **fields: Any) -> None:
        self._count += 1
        event = {"id": f"{self._count:06}", "type": kind, "runId": self._id, "at": int(time.time() * 1000)}
        self._recorder.handle({**event, **fields})  # returns at once


@asynccontextmanager
async def threadkeep(url: str | None, token: str | None, data: Path) -> AsyncGenerator[Client]:
    """A client of a running server, or of a Threadkeep in this process."""
    if url:
        async with Client(url, token=token) as client:
            yield client
    else:
        app = create_app(Settings.load(data=data))
        async with app.lifespan(), Client(app=app) as client:
            yield client


async def main(word: str, url: str | None, token: str | None, data: Path) -> None:
    """Records a run and shows what Threadkeep has of it."""
    async with threadkeep(url, token, data) as client:
        known = [agent async for agent in client.agents() if agent.name == AGENT]
        agent = known[0] if known else await client.create_agent(AGENT)
        conversation = await client.create_conversation(agent.id)
        async with Recorder(client, conversation.id) as recorder:
            await Run(recorder).follow(build(word), f"What does the lease say about {word}?")
        async for message in client.messages(conversation.id):
            print("\n".join(shown(message)))  # noqa: T201 - this is a program


def shown(message: Any) -> Iterator[str]:
    """A message as lines of text."""
    yield f"{message.role} ({message.status}): {message.content}"
    for step in message.thought_process:
        yield f"  {step.kind} {step.title}: {step.detail}".rstrip(": ")
    for source in message.citations:
        yield f"  [{source.index}] {source.file_name}, page {source.page}: {source.snippet}"
    if message.usage:
        yield f"  {message.usage.input_tokens} tokens in, {message.usage.output_tokens} out"
    if message.error:
        yield f"  {message.error.message}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="notice", help="what to look up in the lease")
    parser.add_argument("--url", help="a running server, such as http://127.0.0.1:8710")
    parser.add_argument("--token", help="who we are to it, where it asks")
    parser.add_argument(
        "--data", type=Path, default=Path(".threadkeep"), help="without --url: where to keep it"
    )
    arguments = parser.parse_args()
    asyncio.run(main(arguments.word, arguments.url, arguments.token, arguments.data))
