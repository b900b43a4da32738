"""A client that sends the frames of AgentX 1.9.0 and keeps the state that its React hooks show.

Frames are facts: what goes over the wire, and what a person then sees, is that of the real client.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.talking import Talk
from threadkeep.tasks import end_tasks
from threadkeep.testing.waiting import PATIENCE_S

Data = dict[str, Any]
Handler = Callable[[Data], None]

REQUEST = {"source": "command", "category": "request", "intent": "request"}
RESPONSE = {"source": "command", "category": "response", "intent": "result"}


class AgentXClient:
    """One connection: requests wait for their responses, sessions that a response names are followed."""

    def __init__(self, socket: ClientConnection, *, acknowledges: bool = True) -> None:
        self._socket = socket
        self._acknowledges = acknowledges
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Data]] = {}
        self._followed: set[str] = set()
        self._handlers: list[Handler] = []
        self._changed = asyncio.Event()
        self.frames: list[str] = []
        """The types of all that came, in order."""
        self.close_code: int | None = None
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        await end_tasks(self._reading)

    async def send(self, frame: Data) -> None:
        await self._socket.send(msgspec.json.encode(frame).decode())

    async def sign_in(self, authorization: str) -> None:
        """What the browser's client sends first: it can set no header."""
        await self.send({"type": "auth", "headers": {"Authorization": authorization}})

    async def request(self, name: str, **data: Any) -> Data:
        """The data of the response to a request."""
        request_id = f"req_{next(self._numbers)}"
        waiting = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        data = {**data, "requestId": request_id}
        await self.send({"type": f"{name}_request", "timestamp": 1, "data": data, **REQUEST})
        async with asyncio.timeout(PATIENCE_S):
            response = await waiting
        assert response["type"] == f"{name}_response"
        assert {key: response[key] for key in RESPONSE} == RESPONSE
        assert isinstance(response["timestamp"], int)
        found = dict(response["data"])
        assert found.pop("requestId") == request_id
        for session_id in found.get("__subscriptions", ()):
            await self.follow(session_id)
        return found

    async def follow(self, session_id: str) -> None:
        """Follows a session, once: the client never forgets one."""
        if session_id not in self._followed:
            self._followed.add(session_id)
            await self.send({"type": "subscribe", "sessionId": session_id})

    def on_event(self, handler: Handler) -> None:
        self._handlers.append(handler)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Reads on until something is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def came(self, kind: str, times: int = 1) -> None:
        """Until so many envelopes of a kind have come."""
        await self.until(lambda: self.frames.count(kind) >= times)

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                await self._take(msgspec.json.decode(message))
                self._changed.set()
        except ConnectionClosed:
            pass
        self.close_code = self._socket.close_code
        self._changed.set()

    async def _take(self, message: Data) -> None:
        if "__msgId" in message and "__payload" in message:
            if self._acknowledges:
                await self.send({"__ack": message["__msgId"]})
            message = msgspec.json.decode(message["__payload"])
        self.frames.append(message["type"])
        waiting = self._waiting.pop(message["data"].get("requestId", ""), None)
        if message["category"] == "response" and waiting is not None:
            waiting.set_result(message)
            await asyncio.sleep(0)  # whoever waits goes on before the next message, as in a browser
            return
        for handler in self._handlers:
            handler(message)


@asynccontextmanager
async def agentx(talk: Talk, *, acknowledges: bool = True, **options: Any) -> AsyncGenerator[AgentXClient]:
    """A client on its own socket."""
    url = f"ws{talk.url.removeprefix('http')}/ws"
    async with connect(url, max_size=None, close_timeout=1, **options) as socket:
        client = AgentXClient(socket, acknowledges=acknowledges)
        try:
            yield client
        finally:
            await client.close()


@dataclass
class Tool:
    """A tool as a person sees it: planning, executing, then success or error."""

    id: str
    name: str
    status: str
    input: Any = None
    output: Any = None


@dataclass
class Entry:
    """One entry of a conversation: what a user said, a reply of texts and tools, or an error."""

    type: str
    status: str = ""
    text: str = ""
    blocks: list[str | Tool] = field(default_factory=list[str | Tool])
    code: str = ""


class AgentHook:
    """What the hook for one conversation shows: its entries, the agent's status, errors."""

    def __init__(self, client: AgentXClient, image_id: str) -> None:
        self._client = client
        self._image_id = image_id
        self._streaming: Entry | None = None
        self._is_in_text = False
        self._tools: dict[str, Tool] = {}
        self.entries: list[Entry] = []
        self.errors: list[Data] = []
        self.statuses = ["idle"]
        client.on_event(self._take)

    @property
    def status(self) -> str:
        return self.statuses[-1]

    async def load(self) -> "AgentHook":
        """Loads the history, as the hook does at first."""
        response = await self._client.request("image_messages", imageId=self._image_id)
        assert response["imageId"] == self._image_id
        self.entries = _entries(response["messages"])
        return self

    async def send(self, content: str | list[Data]) -> Data:
        """Says something; the reply is begun as soon as the server has taken it."""
        said = Entry("user", "pending", str(content))
        self.entries.append(said)
        response = await self._client.request("message_send", imageId=self._image_id, content=content)
        said.status = "success"
        self._streaming = Entry("assistant", "queued")
        self.entries.append(self._streaming)
        return response

    async def ended(self) -> None:
        await self._client.until(lambda: self.statuses[1:] != [] and self.status in {"idle", "error"})

    def _take(self, event: Data) -> None:
        if event.get("context", {}).get("imageId") == self._image_id:
            take = getattr(self, f"_{event['type']}", None)
            if take is not None:
                take(event["data"])

    def _conversation_start(self, data: Data) -> None:
        self._become("thinking", "processing")

    def _conversation_responding(self, data: Data) -> None:
        self._become("responding", "streaming")

    def _tool_executing(self, data: Data) -> None:
        self._become("planning_tool", None)

    def _conversation_end(self, data: Data) -> None:
        self._become("idle", "completed")
        self._streaming, self._is_in_text = None, False

    def _text_delta(self, data: Data) -> None:
        if self._streaming is None:
            return
        if self._is_in_text:
            self._streaming.blocks[-1] = f"{self._streaming.blocks[-1]}{data['text']}"
        else:
            self._streaming.blocks.append(data["text"])
        self._is_in_text = True

    def _assistant_message(self, data: Data) -> None:
        self._is_in_text = False

    def _tool_use_start(self, data: Data) -> None:
        self._is_in_text = False
        tool = self._tools[data["toolCallId"]] = Tool(data["toolCallId"], data["toolName"], "planning")
        if self._streaming is None:
            self._streaming = Entry("assistant", "streaming")
            self.entries.append(self._streaming)
        self._streaming.blocks.append(tool)

    def _tool_call_message(self, data: Data) -> None:
        tool = self._tools[data["toolCall"]["id"]]
        tool.status, tool.input = "executing", data["toolCall"]["input"]

    def _tool_result_message(self, data: Data) -> None:
        tool = self._tools[data["toolCallId"]]
        tool.output = data["toolResult"]["output"]
        tool.status = _outcome(tool.output)

    def _error_message(self, data: Data) -> None:
        self.entries.append(_error_entry(data))

    def _error_occurred(self, data: Data) -> None:
        self.errors.append(data)
        self._become("error", None)

    def _become(self, status: str, reply: str | None) -> None:
        self.statuses.append(status)
        if reply is not None and self._streaming is not None:
            self._streaming.status = reply


class ImagesHook:
    """What the hook for the list shows."""

    def __init__(self, client: AgentXClient, container_id: str | None = None) -> None:
        self._client = client
        self._container_id = container_id
        self.images: list[Data] = []

    async def refresh(self) -> None:
        given = {} if self._container_id is None else {"containerId": self._container_id}
        self.images = (await self._ask("image_list", **given))["records"]

    async def create(self, **config: str) -> Data:
        container_id = self._container_id or "default"
        record = (await self._ask("image_create", containerId=container_id, config=config))["record"]
        self.images.insert(0, record)
        return record

    async def run(self, image_id: str) -> Data:
        ran = await self._ask("image_run", imageId=image_id)
        self._image(image_id).update(online=True, agentId=ran["agentId"])
        return ran

    async def stop(self, image_id: str) -> None:
        await self._ask("image_stop", imageId=image_id)
        self._image(image_id).update(online=False, agentId=None)

    async def update(self, image_id: str, **updates: str) -> None:
        record = (await self._ask("image_update", imageId=image_id, updates=updates))["record"]
        self._image(image_id).update(record)

    async def delete(self, image_id: str) -> None:
        await self._ask("image_delete", imageId=image_id)
        self.images = [it for it in self.images if it["imageId"] != image_id]

    async def _ask(self, name: str, **data: Any) -> Data:
        response = await self._client.request(name, **data)
        assert "error" not in response, response
        return response

    def _image(self, image_id: str) -> Data:
        return next(it for it in self.images if it["imageId"] == image_id)


def _entries(messages: list[Data]) -> list[Entry]:
    """A history as the hook shows it: calls stand under the reply that they name, with their results."""
    results = {it["toolCallId"]: it["toolResult"]["output"] for it in messages if it["role"] == "tool"}
    entries: list[Entry] = []
    replies: dict[str, Entry] = {}
    for message in messages:
        match message["subtype"]:
            case "user":
                entries.append(Entry("user", "success", message["content"]))
            case "assistant":
                texts = [part["text"] for part in message["content"] if part["text"]]
                replies[message["id"]] = Entry("assistant", "completed", blocks=[*texts])
                entries.append(replies[message["id"]])
            case "tool-call":
                replies[message["parentId"]].blocks.append(_kept_tool(message["toolCall"], results))
            case "tool-result":
                pass
            case "error":
                entries.append(_error_entry(message))
            case other:
                raise AssertionError(f"the client knows no message {other}")
    return entries


def _kept_tool(call: Data, results: dict[str, Data]) -> Tool:
    output = results.get(call["id"])
    status = "executing" if output is None else _outcome(output)
    return Tool(call["id"], call["name"], status, call["input"], output)


def _outcome(output: Data) -> str:
    return "error" if output["type"] == "error-text" else "success"


def _error_entry(message: Data) -> Entry:
    assert (message["role"], message["subtype"]) == ("error", "error")
    return Entry("error", text=message["content"], code=message["errorCode"])
