"""The confined process of imports, for conversations that cost without end: what they are called says how."""

import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from threadkeep.imports import chatgpt, process
from threadkeep.imports.frames import Opening

_read = chatgpt.read


def read(value: Any) -> Iterator[Any]:
    """Reads a conversation, sooner or later."""
    while value["title"] == "burns":
        pass
    if value["title"] == "bloats":
        bytes(1 << 46)
    if value["title"] == "breaks":
        sys.exit(3)
    return _read(value)


if __name__ == "__main__":
    chatgpt.read = read
    process.main(msgspec.json.decode(sys.argv[1], type=Opening))
