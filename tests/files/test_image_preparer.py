"""Images in a process of their own: what it writes, and what happens when it cannot go on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.files.making import encode, noted, photograph, png_bomb, tall_red_above_blue
from threadkeep.domain.errors import StorageUnavailable, UnsupportedFile
from threadkeep.domain.file import PNG, WEBP, detect
from threadkeep.files.image_preparer import ProcessImagePreparer
from threadkeep.files.images import TOO_LARGE, UNREADABLE
from threadkeep.ports.attachments import PreparedImage


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "upload", encode(photograph()))


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


async def prepared(source: Path, content: bytes) -> PreparedImage:
    """What becomes of an image, written beside it."""
    return await ProcessImagePreparer().prepare(written(source, content), source.parent)


async def test_renditions_are_written_and_described(source: Path):
    turned = tall_red_above_blue().transpose(Image.Transpose.ROTATE_90)
    image = await prepared(source, encode(turned, "JPEG", exif=noted(6)))
    assert (image.width, image.height) == (40, 80)
    assert (image.model.width, image.model.height) == (40, 80)
    for rendition, name in ((image.model, "model"), (image.preview, "preview")):
        content = rendition.path.read_bytes()
        assert rendition.path == source.parent / name
        assert rendition.size == len(content)
        assert rendition.media_type == detect(content, "x")
    assert image.preview.media_type == WEBP


@pytest.mark.parametrize(
    ("content", "reason"),
    [(png_bomb(), TOO_LARGE), (encode(photograph())[:5000], UNREADABLE), (b"<html>", UNREADABLE)],
)
async def test_hostile_image_is_refused_and_the_next_one_works(source: Path, content: bytes, reason: str):
    with pytest.raises(UnsupportedFile) as refused:
        await prepared(source, content)
    assert (refused.value.message, refused.value.code) == (reason, "UNSUPPORTED_FILE")
    assert [path.name for path in source.parent.iterdir()] == [source.name]
    assert (await prepared(source, encode(tall_red_above_blue()))).model.media_type == PNG


async def test_image_that_takes_too_long_is_refused(source: Path):
    with pytest.raises(UnsupportedFile, match="takes too long"):
        await ProcessImagePreparer(most_s=0.01).prepare(source, source.parent)


async def test_missing_file_and_folder_are_faults_of_ours(source: Path):
    with pytest.raises(StorageUnavailable, match="No such file"):
        await ProcessImagePreparer().prepare(source.parent / "nothing", source.parent)
    with pytest.raises(StorageUnavailable, match="No such file"):
        await ProcessImagePreparer().prepare(source, source.parent / "nowhere")


def test_image_that_needs_too_much_memory_is_refused(source: Path):
    written(source, png_bomb(7_000, 7_000))
    code = (
        "import sys; from pathlib import Path; from threadkeep.files import image_process as process\n"
        "process.MOST_MEMORY_BYTES = 80 * 1024**2\n"
        "process.main(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(source), str(source.parent)]
    told = subprocess.run(command, capture_output=True, check=True).stdout
    assert json.loads(told) == {"failed": "This image needs more memory than allowed."}
