"""A file to import, and what is found in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from threadkeep.domain.briefing import Briefing
from threadkeep.domain.document import Document
from threadkeep.domain.exchange.import_run import SkipReason
from threadkeep.ports.exchange.foreign import ForeignConversation
from threadkeep.ports.exchange.records import (
    KeptMemory,
    KnownAgent,
    OwnAgent,
    OwnInstructions,
    WholeConversation,
)


@dataclass(frozen=True, slots=True)
class Flawed:
    """An item that can't be imported, and why."""

    what: str
    why: str
    reason: SkipReason = SkipReason.UNREADABLE


ImportItem = (
    OwnInstructions | OwnAgent | KnownAgent | Document | KeptMemory | Briefing | WholeConversation
    | ForeignConversation
)  # fmt: skip
"""An item of an imported file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """How much of a file is read; None: as much as there is."""

    conversation_bytes: int
    """Of one conversation; a larger one is flawed."""
    conversations: int | None = None
    unpacked_bytes: int | None = None
    """Of all conversations, and of all files beside them that are read."""
    directory_bytes: int | None = None
    """Of the list of files that a ZIP file has at its end."""


class ImportSource(Protocol):
    """An imported file, read in chunks."""

    @property
    def is_ours(self) -> bool:
        """Whether it is a Threadkeep export."""
        ...

    def stop(self) -> None:
        """Ends counting and reading soon, on whichever thread: what follows is as if it weren't there."""
        ...

    def count(self) -> int:
        """How many conversations it has, flawed ones too. UnsupportedImport if it has too many."""
        ...

    def found(self) -> Iterator[ImportItem | Flawed]:
        """Its items in order; conversations one at a time."""
        ...

    def open(self, name: str) -> BinaryIO | None:
        """An accompanying file, such as a payload's content; None if it is missing."""
        ...

    def read_asset(self, asset_id: str, *, most: int) -> tuple[str, bytes] | None:
        """Name and content of a file that another product's conversations name by its id; None if missing.

        InvalidRequest if it is damaged, or has more than `most` bytes.
        """
        ...
