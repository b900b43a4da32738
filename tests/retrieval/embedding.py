"""An embedder without a model, and documents read by any."""

import random
import struct
from collections.abc import Sequence
from pathlib import Path

from threadkeep.clock import system_clock
from threadkeep.domain.workspace import Workspaces
from threadkeep.jobs.documents import DocumentJobs
from threadkeep.ports.embedder import Embedder
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.storage.documents.document_files import FolderDocumentFiles
from threadkeep.storage.documents.vector_index import PgVector
from threadkeep.storage.store import Store

DIMENSIONS = 32


class DrawnEmbedder:
    """Vectors that mean nothing, but are the same for the same text every time."""

    name = "drawn"

    def understands(self, text: str) -> bool:
        """All are alike to it."""
        return True

    async def embed_query(self, query: str) -> bytes:
        """A direction drawn by lot."""
        chance = random.Random(query)
        numbers = [chance.gauss(0, 1) for _ in range(DIMENSIONS)]
        length = sum(number * number for number in numbers) ** 0.5
        return struct.pack(f"<{DIMENSIONS}e", *(number / length for number in numbers))

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """One for each."""
        return [await self.embed_query(text) for text in texts]

    async def close(self) -> None:
        """There is nothing to end."""


def document_jobs_with(
    embedder: Embedder, store: Store, folder: Path, vector_index: PgVector | None = None
) -> DocumentJobs:
    """Has this embedder read what is kept in a store and a folder."""
    files = FolderDocumentFiles(Workspaces(folder))
    return DocumentJobs(store, files, ProcessExtractor(), embedder, system_clock, vector_index)
