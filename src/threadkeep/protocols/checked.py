"""Replies that must fit a schema, for clients that can't take text back: sent whole, once they fit.

An event filter in front of a narrator. Of a model call whose reply is checked, it holds the text until it is
known what becomes of it: dropped if the model is asked again, passed on at the end.
"""

from collections.abc import Sequence

from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    Text,
    ToolCalled,
)
from threadkeep.domain.outputs.json_text import json_in


class CheckedReplies:
    """The events of one turn without the texts that may have to be taken back.

    `only_json` is for clients that read all that they get as the JSON that they asked for: they get no text
    before a tool call, no refusal, and the reply without the fences around it.
    """

    def __init__(self, *, only_json: bool = False) -> None:
        self._only_json = only_json
        self._held: list[str] | None = None
        """The text of the model call, if that is checked."""
        self.refusal: str | None = None
        """What the model has said instead of the JSON."""

    def passing(self, body: EventBody) -> Sequence[EventBody]:
        """What the client gets of the next event."""
        match body:
            case IterationStart():
                before = self._released()
                self._held = [] if body.is_checked else None
                return *before, body
            case Text(text) if self._held is not None:
                self._held.append(text)
                return ()
            case IterationRestart() if self._held is not None:
                self._held.clear()
                return (body,)
            case ToolCalled() | Failed():
                return *self._released(), body
            case Done():
                return *self._last(body), body
            case _:
                return (body,)

    def _released(self) -> Sequence[Text]:
        """What was said that is not the reply."""
        text = self._taken()
        return () if self._only_json or not text else (Text(text),)

    def _last(self, end: Done) -> Sequence[Text]:
        """The reply."""
        if not (text := self._taken()):
            return ()
        if not self._only_json or end.status == "CANCELLED":
            return (Text(text),)
        if end.stop_reason == "refusal":
            self.refusal = text
            return ()
        return (Text(json_in(text)),)

    def _taken(self) -> str:
        if not self._held:
            return ""
        text = "".join(self._held)
        self._held.clear()
        return text
