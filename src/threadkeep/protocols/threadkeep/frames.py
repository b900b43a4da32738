"""The frames of our dialects besides events, which are in `wire/events.py`."""

from msgspec import Struct


class TextError(Struct, frozen=True):
    """Why the turn failed, in the `text` dialect."""

    code: str
    message: str
