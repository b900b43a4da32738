"""A server of tools that misbehaves as it is told to. It speaks MCP by hand, so that it can speak it badly.

    python chaos.py MODE

It writes its process id, and those of its children, to the file that CHAOS_PIDS names.
"""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

tools = ["echo", "hang", "freeze", "crash", "big", "progress", "picture", "chart", "fail", "environment"]
tools += ["cancelled", "change", "children", "deaf", "nonsense", "count", "files", "stall", "rows", "mute"]
tools += ["deep", "twice", "blocks", "scan", "hide", "raw", "ask", "asked"]
cancelled: list[Any] = []
calls = 0
asking: dict[Any, Any] = {}
answers: list[Any] = []


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def respond(number: Any, result: Any) -> None:
    say({"id": number, "result": result})


def text(number: Any, value: str) -> None:
    respond(number, {"content": [{"type": "text", "text": value}]})


def progress(token: Any, done: int, total: int, message: str) -> None:
    params = {"progressToken": token, "progress": done, "total": total, "message": message}
    say({"method": "notifications/progress", "params": params})


def note_pid(pid: int) -> None:
    if "CHAOS_PIDS" in os.environ:
        with Path(os.environ["CHAOS_PIDS"]).open("a") as file:
            file.write(f"{pid}\n")


def call(number: Any, name: str, arguments: dict[str, Any], token: Any) -> None:
    global calls
    calls += 1
    match name:
        case "echo":
            text(number, arguments.get("text", ""))
        case "count":
            text(number, str(calls))
        case "hang":
            pass
        case "stall":
            progress(token, 1, 2, "begun")
        case "freeze":
            progress(token, 1, 2, "begun")
            time.sleep(3600)
        case "crash":
            sys.stderr.write("chaos: this is the end\n")
            sys.stderr.flush()
            os._exit(3)
        case "big":
            text(number, "x" * arguments["bytes"])
        case "rows":
            rows = [{"id": row, "name": f"row {row}", "ok": True} for row in range(arguments["rows"])]
            respond(number, {"content": [], "structuredContent": {"rows": rows}})
        case "deep":
            levels = arguments["levels"]
            nested = "[" * levels + "]" * levels
            head = f'{{"jsonrpc": "2.0", "id": {number}, "result": '
            content = (
                f'{{"content": [], "structuredContent": {{"a": {nested}, "b": "{arguments["beside"]}"}}}}'
            )
            sys.stdout.write(head + content + "}\n")
            sys.stdout.flush()
        case "twice":
            text(number + 1000, "for somebody else")
            text(number, "first")
            text(number, "second")
        case "blocks":
            respond(number, {"content": [{"type": "text", "text": "x"}] * arguments["blocks"]})
        case "scan":
            data = base64.b64encode(bytes(arguments["bytes"])).decode()
            image = {"type": "image", "data": data, "mimeType": "image/png"}
            chart = {"kind": "bar", "rows": [{"x": row, "y": row} for row in range(arguments["rows"])]}
            respond(number, {"content": [image], "structuredContent": {"chart_data": chart, "pages": 1}})
        case "progress":
            for step in range(3):
                progress(token, step + 1, 3, f"step {step + 1}")
                time.sleep(0.15)
            text(number, "done")
        case "picture":
            image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
            respond(number, {"content": [{"type": "text", "text": "Here it is."}, image]})
        case "files":
            notes = {"uri": "file:///tmp/notes.txt", "mimeType": "text/plain", "text": "remember"}
            blob = base64.b64encode(b"\x00\x01").decode()
            data = {"uri": "file:///tmp/..%2F..%2Fetc%2Fdata.bin", "mimeType": "nonsense", "blob": blob}
            broken = {"type": "image", "data": "%%%", "mimeType": "image/png"}
            content = [
                {"type": "resource", "resource": notes},
                {"type": "resource", "resource": data},
                broken,
            ]
            respond(number, {"content": content})
        case "chart":
            structured = {"chart_data": {"series": [1, 2]}, "rows": 2}
            respond(number, {"content": [], "structuredContent": structured})
        case "fail":
            failed = {"content": [{"type": "text", "text": f"no luck with {os.environ.get('API_KEY')}"}]}
            respond(number, {**failed, "isError": True})
        case "environment":
            text(number, json.dumps({**os.environ, "cwd": str(Path.cwd())}))
        case "cancelled":
            text(number, json.dumps(cancelled))
        case "change":
            tools.append("new_tool")
            say({"method": "notifications/tools/list_changed"})
            text(number, "changed")
        case "hide":
            tools.clear()
            say({"method": "notifications/tools/list_changed"})
            text(number, "you shall not know")
        case "children":
            for session in (False, True):
                command = ["sleep", "3600"]
                note_pid(subprocess.Popen(command, start_new_session=session).pid)
            text(number, "born")
        case "deaf":
            text(number, "I no longer listen")
            time.sleep(3600)
        case "mute":
            os.close(1)
            time.sleep(3600)
        case "nonsense":
            respond(number, {"content": "nonsense"})
        case "ask":
            asking[f"question-{number}"] = number
            say({"id": f"question-{number}", "method": arguments["method"], "params": arguments["params"]})
        case "asked":
            text(number, json.dumps(answers))
        case "raw":
            head = f'{{"jsonrpc": "2.0", "id": {number}, "result": '
            sys.stdout.buffer.write((head + arguments["result"] + "}\n").encode("latin-1"))
            sys.stdout.flush()
        case _:
            say({"id": number, "error": {"code": -32602, "message": f"There is no tool {name}."}})


def later(number: Any, params: dict[str, Any]) -> None:
    """Asks as the newest servers do: the call ends, and comes again with the answers."""
    if "inputResponses" in params:
        given = json.dumps([params["requestState"], params["inputResponses"]])
        respond(number, {"resultType": "complete", "content": [{"type": "text", "text": given}]})
    else:
        asked = {"method": "elicitation/create", "params": params["arguments"]}
        respond(
            number, {"resultType": "input_required", "inputRequests": {"a": asked}, "requestState": "so far"}
        )


def hear(message: dict[str, Any]) -> None:
    number, params = message.get("id"), message.get("params", {})
    match message.get("method"):
        case "initialize":
            if MODE == "silent":
                return
            if MODE == "newest":
                say({"id": number, "error": {"code": -32601, "message": "Those were the days."}})
                return
            if MODE.startswith("slow"):
                time.sleep(float(MODE.removeprefix("slow")))
            version = params["protocolVersion"]
            info = {"name": "chaos", "version": "1"}
            respond(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case "server/discover":
            versions: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            respond(number, {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **versions})
        case "tools/list":
            if not tools:
                say({"id": number, "error": {"code": -32603, "message": "They are mine."}})
                return
            schema: dict[str, Any] = {"type": "object", "properties": {}}
            if MODE == "abundant":
                tools.extend(f"tool{number}" for number in range(20_000))
            listed = [{"name": name, "description": f"Does {name}.", "inputSchema": schema} for name in tools]
            newest = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            respond(number, {"tools": listed} | (newest if MODE == "newest" else {}))
        case "tools/call":
            if MODE == "newest":
                later(number, params)
                return
            token = params.get("_meta", {}).get("progressToken")
            call(number, params["name"], params.get("arguments", {}), token)
        case "ping":
            respond(number, {})
        case "notifications/cancelled":
            cancelled.append(params["requestId"])
        case None if number in asking:
            answers.append(message.get("result", message.get("error")))
            text(asking.pop(number), json.dumps(answers[-1]))
        case _:
            pass


def flood(stream: Any, piece: str) -> None:
    while True:
        stream.write(piece)


note_pid(os.getpid())
sys.stderr.write(f"chaos: {MODE}\n")
sys.stderr.flush()
match MODE:
    case "exit":
        sys.stderr.write(f"chaos: I will not serve {os.environ.get('API_KEY', 'you')}\n")
        sys.exit(7)
    case "garbage":
        sys.stdout.write("Welcome to chaos!\n\n{}\n[1, 2]\n\xff\xfe{{{\n" + "[" * 100_000 + "\n")
    case "noise":
        threading.Thread(target=flood, args=(sys.stdout, "this is not MCP\n"), daemon=True).start()
    case "endless":
        threading.Thread(target=flood, args=(sys.stdout, "x" * 65536), daemon=True).start()
    case "chatty":
        told = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "hi"},
        }
        threading.Thread(target=flood, args=(sys.stdout, json.dumps(told) + "\n"), daemon=True).start()
    case "stderr":
        threading.Thread(target=flood, args=(sys.stderr, "e" * 200 + "\n"), daemon=True).start()
    case "stubborn":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    case _:
        pass
for line in sys.stdin:
    hear(json.loads(line))
while MODE == "stubborn":
    time.sleep(1)
