"""The messages that a run leaves behind, as AG-UI's own clients build them from its events."""

from typing import Any

from threadkeep.remote_agents.frames import Frame

Json = dict[str, Any]

ROLES = ("user", "assistant", "tool", "reasoning", "system", "developer")
"""Activities are for people; clients don't send them back."""


class Transcript:
    """The thread's messages: those that the run was given, and those that it adds."""

    def __init__(self, given: list[Json]) -> None:
        self.messages = list(given)
        self._by_id: dict[str, Json] = {}
        self._calls: dict[str, Json] = {}
        self._texts: dict[str, list[str]] = {}

    def begin(self, id_: str, role: str) -> None:
        """A message of the agent begins; one that it begins again goes on."""
        if id_ not in self._by_id:
            self._add({"id": id_, "role": role, "content": ""})

    def grow(self, id_: str, text: str) -> None:
        """A piece of a message."""
        self._texts.setdefault(id_, []).append(text)

    def call(self, id_: str, name: str, parent_id: str | None, arguments: str) -> None:
        """A whole call of a tool, as part of its message or as one of its own."""
        message = self._by_id.get(parent_id or id_)
        if message is None or message["role"] != "assistant":
            message = self._add({"id": parent_id or id_, "role": "assistant"})
        call = {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}
        self._calls[id_] = call
        message.setdefault("toolCalls", []).append(call)

    def result(self, id_: str, call_id: str, content: Any) -> None:
        """What a call came to."""
        self._add({"id": id_, "role": "tool", "toolCallId": call_id, "content": content})

    def note_encrypted(self, frame: Frame) -> None:
        """What only the agent's own model can read, and wants back."""
        known = self._calls if frame.subtype == "tool-call" else self._by_id
        if frame.entity_id in known and frame.encrypted_value:
            known[frame.entity_id]["encryptedValue"] = frame.encrypted_value

    def replace(self, messages: list[Json]) -> None:
        """The agent says what the thread consists of."""
        self.messages = [it for it in messages if it.get("role") in ROLES]
        self._texts.clear()
        self._by_id = {it["id"]: it for it in self.messages}
        self._calls = {}

    def whole(self) -> list[Json]:
        """All messages; empty ones say nothing."""
        for id_, pieces in self._texts.items():
            if (message := self._by_id.get(id_)) is not None:
                message["content"] = (message.get("content") or "") + "".join(pieces)
        self._texts.clear()
        return [
            it for it in self.messages if it.get("content") or it.get("toolCalls") or it["role"] == "tool"
        ]

    def _add(self, message: Json) -> Json:
        self.messages.append(message)
        self._by_id[message["id"]] = message
        return message
