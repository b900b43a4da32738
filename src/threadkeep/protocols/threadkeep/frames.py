"""The frames of our dialects that are no events; those are in `wire/events.py`."""

from msgspec import Struct


class TextError(Struct, frozen=True):
    """Why the turn failed, in the `text` dialect."""

    code: str
    message: str
