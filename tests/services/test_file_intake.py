"""What prepares files: a few processes on a node, and users take turns."""

import asyncio
from io import BytesIO
from pathlib import Path
from typing import cast

from tests.files.making import encode, photograph
from tests.making import ALICE, BOB, NOW
from tests.retrieval.files import make_docx
from threadkeep.domain.ids import UserId
from threadkeep.fair_slots import FairSlots
from threadkeep.ports.attachments import ImagePreparer, PdfInspector, PreparedImage, Rendition
from threadkeep.ports.documents import ExtractionFailed, Extractor
from threadkeep.services.file_intake import FileIntake
from threadkeep.testing import until

PICTURE = encode(photograph(8, 8), "PNG")
DOCUMENT = make_docx([(None, "Words.")])


class Workers:
    """Processes that end when a test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = asyncio.Semaphore(0)

    async def prepare(self, source: Path, folder: Path) -> PreparedImage:
        await self._run()
        (folder / "small").write_bytes(b"small")
        rendition = Rendition(path=folder / "small", media_type="image/png", size=5, width=8, height=8)
        return PreparedImage(width=8, height=8, model=rendition, preview=rendition)

    async def extract(self, file: object, media_type: str):
        await self._run()
        raise ExtractionFailed("It has no text.")
        yield

    async def _run(self) -> None:
        self.begun += 1
        await self.ended.acquire()


async def test_other_user_is_not_behind_sixteen_files_of_the_first(tmp_path: Path):
    workers, slots, done = Workers(), FairSlots(2), list[tuple[str, str]]()
    intake = FileIntake(
        cast("ImagePreparer", workers),
        cast("PdfInspector", workers),
        cast("Extractor", workers),
        tmp_path,
        lambda: NOW,
        slots,
    )

    async def upload(user: UserId, name: str, content: bytes) -> None:
        async with intake.prepared(user, name, BytesIO(content)):
            done.append((user, name))

    kinds = [("a.png", PICTURE), ("a.docx", DOCUMENT)] * 8
    first = [asyncio.create_task(upload(ALICE, *it)) for it in kinds]
    await until(lambda: workers.begun == 2)
    other = asyncio.create_task(upload(BOB, "b.png", PICTURE))
    await asyncio.create_task(upload(BOB, "b.txt", b"Needs no process."))
    assert done == [(BOB, "b.txt")]
    await until(lambda: (slots.waiting(ALICE), slots.waiting(BOB)) == (14, 1))
    for _ in range(3):
        workers.ended.release()
    await other
    assert sum(user == ALICE for user, _ in done) <= 2
    for _ in range(14):
        workers.ended.release()
    await asyncio.gather(*first)
    assert workers.begun == 17
