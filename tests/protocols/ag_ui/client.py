"""A client that is as strict as `@ag-ui/client` 1.0.0, and builds the same messages from events."""

import json
from typing import Any

Json = dict[str, Any]


class BrokenRule(AssertionError):
    """The client would have ended the run with an error."""


class Client:
    """A client's messages, over several runs."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.state: Any = None
        self.interrupts: list[Json] = []
        self.runs: list[Json] = []
        """The first and the last event of each run."""
        self._open: set[tuple[str, str]] = set()
        self._is_running = False

    def read(self, stream: bytes) -> list[Json]:
        """A whole response; its events."""
        *frames, rest = stream.split(b"\n\n")
        assert not rest
        events = [json.loads(frame.removeprefix(b"data: ")) for frame in frames]
        for event in events:
            self._receive(event)
        if self._is_running:
            raise BrokenRule("the run has no end")
        return events

    def _receive(self, event: Json) -> None:
        _refuse_null(event)
        type_ = event["type"]
        if (type_ == "RUN_STARTED") is self._is_running:
            raise BrokenRule(f"{type_} when {self._is_running=}")
        getattr(self, f"_{type_.lower()}")(event)

    # The run

    def _run_started(self, event: Json) -> None:
        self._is_running, self.interrupts = True, []
        self.runs.append(event)

    def _run_finished(self, event: Json) -> None:
        if self._open:
            raise BrokenRule(f"RUN_FINISHED while open: {self._open}")
        outcome = event.get("outcome", {})
        self.interrupts = outcome.get("interrupts", [])
        assert self.interrupts or outcome.get("type") != "interrupt"
        self._end(event)

    def _run_error(self, event: Json) -> None:
        self._open.clear()
        self._end(event)

    def _end(self, event: Json) -> None:
        self._is_running = False
        assert event.get("runId", self.runs[-1]["runId"]) == self.runs[-1]["runId"]
        self.runs.append(event)

    def _state_snapshot(self, event: Json) -> None:
        self.state = event["snapshot"]

    def _messages_snapshot(self, event: Json) -> None:
        roles = {it["role"] for it in event["messages"]}
        only_here = {"activity", "reasoning"} - roles
        given = {it["id"]: it for it in event["messages"]}
        assert len(given) == len(event["messages"]), "an id is there twice"
        kept = [it for it in self.messages if it["id"] in given or it["role"] in only_here]
        known = {it["id"] for it in kept}
        self.messages = [given.get(it["id"], it) for it in kept]
        self.messages += [it for it in event["messages"] if it["id"] not in known]

    def _custom(self, event: Json) -> None:
        assert event["name"]

    def _step_started(self, event: Json) -> None:
        self._begin("step", event["stepName"])

    def _step_finished(self, event: Json) -> None:
        self._finish("step", event["stepName"])

    # Texts and thoughts

    def _text_message_start(self, event: Json) -> None:
        self._begin("text", event["messageId"])
        self._message(event["messageId"], event["role"])

    def _text_message_content(self, event: Json) -> None:
        self._add("text", event)

    def _text_message_end(self, event: Json) -> None:
        self._finish("text", event["messageId"])

    def _reasoning_start(self, event: Json) -> None:
        self._begin("span", event["messageId"])

    def _reasoning_message_start(self, event: Json) -> None:
        self._begin("thought", event["messageId"])
        self._message(event["messageId"], "reasoning")

    def _reasoning_message_content(self, event: Json) -> None:
        self._add("thought", event)

    def _reasoning_message_end(self, event: Json) -> None:
        self._finish("thought", event["messageId"])

    def _reasoning_end(self, event: Json) -> None:
        self._finish("span", event["messageId"])

    def _begin(self, kind: str, id_: str) -> None:
        if (kind, id_) in self._open:
            raise BrokenRule(f"{kind} {id_} has begun")
        self._open.add((kind, id_))

    def _finish(self, kind: str, id_: str) -> None:
        self._check_open(kind, id_)
        self._open.remove((kind, id_))

    def _check_open(self, kind: str, id_: str) -> None:
        if (kind, id_) not in self._open:
            raise BrokenRule(f"{kind} {id_} has not begun")

    def _message(self, id_: str, role: str) -> None:
        known = self._find(id_)
        if known is None:
            self.messages.append({"id": id_, "role": role, "content": ""})
        elif known["role"] != role:
            raise BrokenRule(f"{id_} is a message of {known['role']}")

    def _add(self, kind: str, event: Json) -> None:
        self._check_open(kind, event["messageId"])
        message = self._find(event["messageId"])
        assert message is not None
        message["content"] += event["delta"]

    def _find(self, id_: str) -> Json | None:
        return next((it for it in self.messages if it["id"] == id_), None)

    # Calls and activities

    def _tool_call_start(self, event: Json) -> None:
        id_ = event["toolCallId"]
        self._begin("call", id_)
        assert self._find(id_) is None
        call = {"id": id_, "type": "function", "function": {"name": event["toolCallName"], "arguments": ""}}
        self.messages.append({"id": id_, "role": "assistant", "toolCalls": [call]})

    def _tool_call_args(self, event: Json) -> None:
        self._check_open("call", event["toolCallId"])
        owner = self._find(event["toolCallId"])
        assert owner is not None
        owner["toolCalls"][0]["function"]["arguments"] += event["delta"]

    def _tool_call_end(self, event: Json) -> None:
        self._finish("call", event["toolCallId"])

    def _tool_call_result(self, event: Json) -> None:
        result = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
        result["content"] = event["content"]
        if "metadata" in event:
            result["metadata"] = event["metadata"]
        assert self._find(result["id"]) is None
        owner = self._find(event["toolCallId"])
        at = len(self.messages) if owner is None else self.messages.index(owner) + 1
        while at < len(self.messages) and self.messages[at]["role"] == "tool":
            at += 1
        self.messages.insert(at, result)

    def _activity_snapshot(self, event: Json) -> None:
        message = {"id": event["messageId"], "role": "activity", "activityType": event["activityType"]}
        message["content"] = event["content"]
        known = self._find(message["id"])
        if known is None:
            self.messages.append(message)
        else:
            self.messages[self.messages.index(known)] = message


# The values of applications, in which null is a value
_THEIRS = {"content", "snapshot", "value", "metadata", "responseSchema", "arguments"}


def _refuse_null(event: Json) -> None:
    for name, value in event.items():
        if value is None:
            raise BrokenRule(f"{name} is null in {event}")
        if isinstance(value, dict) and name not in _THEIRS:
            _refuse_null(value)  # pyright: ignore[reportUnknownArgumentType]
