"""The bytes of files, by content id; in the database in pieces, so that nobody holds a whole one."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import BinaryIO, Protocol

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import ContentId
from threadkeep.storage.database.connector import Database, Plan, Statement

PIECE_BYTES = 1024 * 1024
OpenSource = Callable[[], BinaryIO]

# In pieces, so that neither reading nor writing needs a whole content in memory.
_ADD_PIECE = Statement(
    "INSERT INTO tk_content_pieces (content_id, number, content) VALUES (:content_id, :number, :content)"
)
PIECE = Statement("SELECT content FROM tk_content_pieces WHERE content_id = :content_id AND number = :number")
# NULL if the content is lost.
_LENGTH = Statement(
    "SELECT SUM(length(content)) FROM tk_content_pieces WHERE content_id = :content_id",
)


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The bytes of a file in one of its forms, to be read piece by piece."""

    size: int
    sha256: str
    read: Callable[[int, int], AsyncGenerator[bytes]]
    """The bytes from the first number to before the second; StorageError if they end early."""


class FileContents(Protocol):
    """Where the bytes of files are, by content id."""

    async def stage(self, contents: Mapping[ContentId, Path]) -> None:
        """Stores contents that a unit of work is about to name, if they are outside the database."""
        ...

    async def stage_bytes(self, content_id: ContentId, content: bytes) -> None:
        """Likewise stores one that is in memory."""
        ...

    def write_within(self, content_id: ContentId, source: OpenSource) -> Plan[None]:
        """Stores a content in the unit of work that names it, unless it is staged."""
        ...

    async def settle(self, spares: Mapping[ContentId, ContentId]) -> None:
        """Removes staged contents that the user already has; one that is lost is replaced by its spare."""
        ...

    async def size(self, content_id: ContentId) -> int | None:
        """How many bytes of a content there are; None if it is lost."""
        ...

    def read(self, content_id: ContentId, start: int, stop: int) -> AsyncGenerator[bytes]:
        """The bytes of a content from `start` to before `stop`, in pieces; StorageError if they end early."""
        ...

    async def remove(self, ids: Iterable[ContentId]) -> None:
        """Removes the bytes of contents that no row names."""
        ...

    async def collect(self) -> int:
        """Removes bytes that no row names, as a crash may leave them; returns how many contents."""
        ...


class TableFileContents:
    """Contents in a table: every node has them, and deleting their row cascades to them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stage(self, contents: Mapping[ContentId, Path]) -> None:
        """Nothing: `write_within` does it."""

    async def stage_bytes(self, content_id: ContentId, content: bytes) -> None:
        """Nothing: `write_within` does it."""

    def write_within(self, content_id: ContentId, source: OpenSource) -> Plan[None]:
        """Stores a content in pieces."""
        with source() as file:
            for number in count():
                if not (piece := file.read(PIECE_BYTES)):
                    break
                yield _ADD_PIECE(content_id=content_id, number=number, content=piece)

    async def settle(self, spares: Mapping[ContentId, ContentId]) -> None:
        """Nothing: only what is needed was written."""

    async def size(self, content_id: ContentId) -> int | None:
        """How many bytes of a content there are."""
        ((size,),) = await self._database.fetch(_LENGTH(content_id=content_id))
        return size

    async def read(self, content_id: ContentId, start: int, stop: int) -> AsyncGenerator[bytes]:
        """The bytes of a content, a piece at a time."""
        for number in range(start // PIECE_BYTES, -(-stop // PIECE_BYTES)):
            rows = await self._database.fetch(PIECE(content_id=content_id, number=number))
            if not rows:
                raise ends_early()
            first = number * PIECE_BYTES
            yield bytes(rows[0][0])[max(start - first, 0) : stop - first]

    async def remove(self, ids: Iterable[ContentId]) -> None:
        """Nothing: deleted with their row."""

    async def collect(self) -> int:
        """Nothing is left over."""
        return 0


def ends_early() -> StorageRefused:
    """The content was deleted while it was read, or is damaged."""
    return StorageRefused("The file was deleted, or is damaged.")
