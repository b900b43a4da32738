"""Documents: their storage, and the extraction of their text."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from threadkeep.domain.document import Chunk
from threadkeep.domain.errors import ThreadkeepError


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk with the terms it is found by, as often as they occur."""

    chunk: Chunk
    terms: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExtractedPart:
    """Some chunks of a document, in order, and how much of it has been read."""

    chunks: Sequence[IndexedChunk]
    progress: float


class ExtractionFailed(ThreadkeepError):
    """The file can't be read; the message gives the reason, and retrying won't help."""

    code = "UNSUPPORTED_DOCUMENT"


class PasswordRequired(ExtractionFailed):
    """The file is encrypted with an unknown password."""


class ExtractionBroke(ThreadkeepError):
    """The process that read the file died; the file may be harmless."""


class Extractor(Protocol):
    """Extracts text from files, isolated from everything else."""

    def extract(self, file: BinaryIO, media_type: str) -> AsyncGenerator[ExtractedPart]:
        """Chunks of an open file; raises ExtractionFailed or ExtractionBroke. Closing it cancels the work."""
        ...
