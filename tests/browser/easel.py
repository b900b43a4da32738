"""A small MCP server whose drawing is ready when a test says so: `python -I -S easel.py`.

It speaks MCP by hand: the library takes longer to load than most tests to run.
"""

import json
import queue
import socket
import sys
import threading
from itertools import count
from typing import Any

TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "draw": (
        "Draws a chart, once whoever listens at this port of the machine has hung up.",
        {"port": {"type": "integer"}},
    ),
    "note": ("Writes down a text.", {"text": {"type": "string"}}),
    "frame": ("Asks how the frame should be, and makes it.", {}),
    "plan": ("Draws a plan, as a file.", {}),
    "sell": ("Sends the user to where they pay.", {}),
}
CHART = {"chart_data": {"title": "Drawing", "series": [{"data": [1, 2]}]}}
FRAME = {
    "type": "object",
    "properties": {
        "name": {
            "type": "string",
            "title": "Your name",
            "description": "As it should stand below",
            "minLength": 2,
        },
        "width": {"type": "integer", "title": "Width", "default": 30, "minimum": 10, "maximum": 90},
        "gold": {"type": "boolean", "title": "Gilded", "default": False},
    },
    "required": ["name"],
}
PAYING = {
    "mode": "url",
    "message": "Please pay.",
    "url": "https://pay.example.org/frames/7",
    "elicitationId": "7",
}

# A large image that would do something, if it could.
PLAN = {
    "uri": "file:///plan.svg",
    "mimeType": "image/svg+xml",
    "text": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">'
    + "<script>top.location = 'about:blank'</script>" * 20_000
    + '<rect width="40" height="20"/></svg>',
}

_speaking = threading.Lock()
_numbers = count(1)
_asking: dict[str, "queue.Queue[dict[str, Any]]"] = {}


def say(**message: Any) -> None:
    with _speaking:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def elicit(**params: Any) -> dict[str, Any]:
    """What the user answers."""
    asked = f"question-{next(_numbers)}"
    answered = _asking[asked] = queue.Queue()
    say(id=asked, method="elicitation/create", params=params)
    return answered.get()


def draw(port: int | None = None) -> dict[str, Any]:
    if port is not None:
        with socket.create_connection(("127.0.0.1", port)) as listener:
            listener.recv(1)
    return {"content": [{"type": "text", "text": json.dumps(CHART)}], "structuredContent": CHART}


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def frame() -> dict[str, Any]:
    answer = elicit(mode="form", message="Which frame?", requestedSchema=FRAME)
    return text(json.dumps(answer["content"]) if answer["action"] == "accept" else answer["action"])


def call(number: Any, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "draw":
            say(id=number, result=draw(**arguments))
        case "note":
            say(id=number, result=text(arguments["text"]))
        case "plan":
            say(id=number, result={"content": [{"type": "resource", "resource": PLAN}]})
        case "frame":
            say(id=number, result=frame())
        case _:
            say(id=number, result=text(elicit(**PAYING)["action"]))


def hear(message: dict[str, Any]) -> None:
    number, params = message.get("id"), message.get("params", {})
    match message.get("method"):
        case "initialize":
            about: dict[str, Any] = {
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "easel", "version": "1"},
            }
            say(id=number, result={"protocolVersion": params["protocolVersion"], **about})
        case "tools/list":
            listed = [
                {"name": name, "description": what, "inputSchema": {"type": "object", "properties": takes}}
                for name, (what, takes) in TOOLS.items()
            ]
            say(id=number, result={"tools": listed})
        case "tools/call":
            work = (number, params["name"], params.get("arguments", {}))
            threading.Thread(target=call, args=work, daemon=True).start()
        case None if number in _asking:
            _asking.pop(number).put(message["result"])
        case "ping":
            say(id=number, result={})
        case _:
            pass


if __name__ == "__main__":
    for line in sys.stdin:
        hear(json.loads(line))
