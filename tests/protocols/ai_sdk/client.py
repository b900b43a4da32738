"""What the AI SDK makes of a stream, in Python: the message that its versions build, chunk by chunk.

`tests/clients/ai_sdk` checks the same with the packages themselves.
"""

import json
from typing import Any

Json = dict[str, Any]

SINCE_6 = {"tool-approval-request", "tool-output-denied"}
SINCE_7 = {"reset-step", "steering-message", "tool-approval-response"}
KNOWN = {
    *("start", "start-step", "finish-step", "finish", "abort", "error"),
    *("text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"),
    *("tool-input-start", "tool-input-delta", "tool-input-available"),
    *("tool-output-available", "tool-output-error"),
    *("source-url", "source-document", "file"),
}
ADDED_AS_THEY_ARE = {"source-url", "source-document", "file", "steering-message"}


def chunks(stream: bytes) -> list[Json]:
    """The chunks of a stream that has ended as it should."""
    frames = stream.decode().split("\n\n")
    assert frames.pop() == ""
    assert frames.pop() == "data: [DONE]"
    assert all(it.startswith("data: ") for it in frames)
    return [json.loads(it.removeprefix("data: ")) for it in frames]


class Client:
    """A version of the AI SDK; refuses what it would refuse."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.message: Json = {"id": None, "role": "assistant", "parts": []}
        self.ended: str | None = None
        self.transient: list[Json] = []
        self._active: dict[tuple[str, str], Json] = {}

    @property
    def parts(self) -> list[Json]:
        return self.message["parts"]

    def read(self, stream: bytes) -> Json:
        """A whole response; the message after it."""
        self.ended, self._active = None, {}
        got = chunks(stream)
        assert got[0]["type"] == "start"
        for chunk in got:
            assert self.ended is None, f"{chunk} after {self.ended}"
            self._take(chunk)
        assert self.ended is not None
        assert not self._active
        return self.message

    def _take(self, chunk: Json) -> None:
        kind: str = chunk["type"]
        assert None not in chunk.values() or kind == "tool-output-available", chunk
        since = 7 if kind in SINCE_7 else 6 if kind in SINCE_6 else 5
        assert self.version >= since, f"version {self.version} doesn't know {kind}"
        if kind.startswith("data-"):
            return self._data(chunk)
        assert kind in KNOWN | SINCE_6 | SINCE_7, kind
        if kind in {"finish", "abort", "error"}:
            self.ended = kind
        if metadata := chunk.get("messageMetadata"):
            self.message["metadata"] = {**self.message.get("metadata", {}), **metadata}
        if kind == "start":
            self.message["id"] = chunk["messageId"]
        elif kind == "start-step":
            self.parts.append({"type": "step-start"})
        elif kind == "finish-step":
            assert not self._active, "a part outlives its step"
        elif kind == "reset-step":
            self._active = {}
            while self.parts and self.parts[-1]["type"] != "step-start":
                self.parts.pop()
        elif kind in ADDED_AS_THEY_ARE:
            self.parts.append(chunk)
        elif kind.startswith(("text-", "reasoning-")):
            self._grow(chunk, *kind.split("-", 1))
        elif kind.startswith("tool-"):
            self._tool(kind, chunk)
        return None

    def _grow(self, chunk: Json, kind: str, step: str) -> None:
        key = (kind, chunk["id"])
        if step == "start":
            id_ = {"id": chunk["id"]} if kind == "reasoning" else {}
            self._active[key] = {"type": kind, **id_, "text": "", "state": "streaming"}
            self.parts.append(self._active[key])
        elif step == "delta":
            self._active[key]["text"] += chunk["delta"]
        else:
            self._active.pop(key)["state"] = "done"

    def _tool(self, kind: str, chunk: Json) -> None:
        if kind == "tool-input-start":
            id_ = chunk["toolCallId"]
            part = {"type": f"tool-{chunk['toolName']}", "toolCallId": id_, "state": "input-streaming"}
            self.parts.append(part)
            return
        known = next((it for it in self.parts if it.get("toolCallId") == chunk.get("toolCallId", "")), None)
        if kind == "tool-input-delta":
            assert known
            known["input"] = json.loads(chunk["inputTextDelta"])
            return
        if kind == "tool-input-available" and known is not None:
            metadata = {"callProviderMetadata": chunk["providerMetadata"]}
            known |= {"state": "input-available", "input": chunk["input"], **metadata}
            return
        if kind == "tool-input-available":
            is_dynamic = chunk.get("dynamic", False)
            name = chunk["toolName"]
            self.parts.append(
                {
                    **(
                        {"type": "dynamic-tool", "toolName": name} if is_dynamic else {"type": f"tool-{name}"}
                    ),
                    "toolCallId": chunk["toolCallId"],
                    "state": "input-available",
                    "input": chunk["input"],
                    "callProviderMetadata": chunk["providerMetadata"],
                    **({"providerExecuted": True} if chunk.get("providerExecuted") else {}),
                }
            )
            return
        if kind == "tool-approval-response":
            part = next(it for it in self.parts if it.get("approval", {}).get("id") == chunk["approvalId"])
            part["state"] = "approval-responded"
            part["approval"] = {**part["approval"], "approved": chunk["approved"]}
            return
        part = next(it for it in reversed(self.parts) if it.get("toolCallId") == chunk["toolCallId"])
        if kind == "tool-approval-request":
            reason = {"requestReason": chunk["reason"]} if "reason" in chunk else {}
            part |= {"state": "approval-requested", "approval": {"id": chunk["approvalId"], **reason}}
        elif kind.startswith("tool-output-") and self.version == 5:
            assert chunk.get("dynamic", False) == (part["type"] == "dynamic-tool")
        if kind == "tool-output-available":
            part |= {"state": "output-available", "output": chunk["output"]}
        elif kind == "tool-output-error":
            part |= {"state": "output-error", "errorText": chunk["errorText"]}
        elif kind == "tool-output-denied":
            part |= {"state": "output-denied"}

    def _data(self, chunk: Json) -> None:
        if chunk.get("transient"):
            self.transient.append(chunk)
            return
        same = (it for it in self.parts if it["type"] == chunk["type"] and it.get("id") == chunk.get("id"))
        known = next(same, None) if "id" in chunk else None
        if known is None:
            self.parts.append(chunk)
        else:
            known["data"] = chunk["data"]


def as_loaded(message: Json) -> Json:
    """A message as a page that is loaded again shows it: what was superseded is gone.

    Streams send charts when their results come, the history after the calls: the order may differ. Only the
    client that sent a decision knows it before version 7.
    """
    kept: list[Json] = []
    for part in message["parts"]:
        if part["type"] == "data-superseded":
            while kept.pop()["type"] != "step-start":
                pass
        else:
            kept.append(part)
    return {**message, "parts": charts_last(kept)}


def charts_last(parts: list[Json]) -> list[Json]:
    """The same parts with the charts at the end."""
    charts = [it for it in parts if it["type"] == "data-chart"]
    return [it for it in parts if it not in charts] + sorted(charts, key=lambda it: it["id"])
