"""Prepares an image for a model: upright, small enough, and nothing but its pixels.

Runs in the confined process only, which a hostile file may kill without harm.
"""

import io
import struct
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from PIL import Image, ImageCms

from threadkeep.domain.errors import UnsupportedFile
from threadkeep.domain.file import JPEG, PNG, WEBP
from threadkeep.domain.image import (
    MODEL_BYTES,
    MODEL_EDGE,
    MOST_PIXELS,
    PREVIEW_BYTES,
    PREVIEW_EDGE,
    shrunk,
)

UNREADABLE = "This image is damaged or incomplete."
TOO_LARGE = f"This image is larger than {MOST_PIXELS // 1_000_000} megapixels."
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
_LOSSLESS = {"PNG", "GIF"}
_FEW_COLOURS = {"RGB": 4096, "L": 64}
"""More than a diagram or most screenshots have, fewer than a photograph."""
_SRGB: Any = ImageCms.createProfile("sRGB")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ON_ITS_SIDE = 5
"""From this orientation on, width and height are swapped."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes of a rendition."""

    content: bytes
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Renditions:
    """The renditions of an image; its size is the upright original's."""

    width: int
    height: int
    model: Encoded
    preview: Encoded


@dataclass(frozen=True, slots=True)
class _Upright:
    """An image at the size for models, its original's size, and whether that was lossless."""

    width: int
    height: int
    pixels: Image.Image
    lossless: bool


def render(file: BinaryIO) -> Renditions:
    """The renditions of the first frame; raises UnsupportedFile if there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # damaged camera metadata, which we don't need
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            found = _upright(file)
        model = _first_within(MODEL_BYTES, _model_attempts(found.pixels, lossless=found.lossless))
        preview = _first_within(PREVIEW_BYTES, _preview_attempts(found.pixels))
        return Renditions(width=found.width, height=found.height, model=model, preview=preview)
    except (MemoryError, UnsupportedFile):
        raise
    except Exception as exc:  # hostile files break decoders in unforeseeable ways
        raise UnsupportedFile(UNREADABLE) from exc


def _upright(file: BinaryIO) -> _Upright:
    image = _opened(file)
    (width, height), lossless = image.size, image.format in _LOSSLESS
    image.draft(None, (2 * MODEL_EDGE, 2 * MODEL_EDGE))  # a JPEG can be decoded at a half or a quarter
    image.load()
    turn, profile = _orientation(image), image.info.get("icc_profile")
    image = _plain_mode(image)  # on its own line to free the decoded one, up to 200 MB
    image = _without_opaque_alpha(_as_srgb(_fitted(image, MODEL_EDGE), profile))
    if turn in _UPRIGHT:
        image = image.transpose(_UPRIGHT[turn])
    if turn >= _ON_ITS_SIDE:
        width, height = height, width
    image.info = {}  # what encoders would otherwise write: comments, profiles, places
    return _Upright(width=width, height=height, pixels=image, lossless=lossless)


def _fitted(image: Image.Image, longest_edge: int) -> Image.Image:
    size = shrunk(*image.size, longest_edge=longest_edge)
    return image if size == image.size else image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _opened(file: BinaryIO) -> Image.Image:
    """Reads only the header; an image that declares too many pixels is never decoded."""
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    try:
        _check_webp(file)
        # Never asks for the number of frames: counting them would read them all.
        return Image.open(file, formats=_FORMATS)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as exc:
        raise UnsupportedFile(TOO_LARGE) from exc


def _check_webp(file: BinaryIO) -> None:
    """Refuses a WebP of too many pixels, since opening one allocates memory for all of them."""
    head = file.read(30)
    file.seek(0)
    if head[8:16] == b"WEBPVP8X" and len(head) == 30:
        width, height = (int.from_bytes(head[start : start + 3], "little") + 1 for start in (24, 27))
    elif head[8:16] == b"WEBPVP8L" and len(head) == 30:
        (bits,) = struct.unpack("<I", head[21:25])
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif head[8:16] == b"WEBPVP8 " and len(head) == 30:
        width, height = (size & 0x3FFF for size in struct.unpack("<HH", head[26:30]))
    else:
        return
    if width * height > MOST_PIXELS:
        raise UnsupportedFile(TOO_LARGE)


def _orientation(image: Image.Image) -> int:
    """The camera's orientation, from 1 to 8; a damaged value doesn't make the image unusable."""
    try:
        turn: Any = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - as above
        return 1
    return turn if isinstance(turn, int) and turn in _UPRIGHT else 1


def _plain_mode(image: Image.Image) -> Image.Image:
    """The image in a mode that can be resized and encoded: L, RGB, RGBA or CMYK."""
    if image.mode.startswith("I"):
        # 16-bit grey; converting it directly would make everything white.
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.has_transparency_data:
        return image if image.mode == "RGBA" else image.convert("RGBA")
    return image if image.mode in {"L", "RGB", "CMYK"} else image.convert("RGB")


def _as_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """The intended colours without the profile; ignores a damaged profile."""
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if profile:
        try:
            meant = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, meant, _SRGB, outputMode=mode)
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            converted = None
        if converted is not None:
            return converted
    return image.convert("RGB") if image.mode == "CMYK" else image


def _without_opaque_alpha(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    least: Any = image.getchannel("A").getextrema()[0]
    return image if least < 255 else image.convert("RGB")


def _model_attempts(image: Image.Image, *, lossless: bool) -> Iterator[Encoded]:
    """Lossless if that preserves something or costs nothing, then JPEGs, each smaller than the last."""
    if image.mode == "RGBA" or image.getcolors(_FEW_COLOURS[image.mode]) is not None:
        yield _encoded(image, PNG)
    opaque = _on_white(image)
    # No subsampling, which would blur coloured text; and no `optimize`, for which Pillow allocates one byte
    # per pixel and fails if noise needs more.
    photographs = (_encoded(opaque, JPEG, quality=quality, subsampling=0) for quality in (90, 80, 65, 45))
    if lossless:
        # A screenshot with text is sharper as a PNG, and often smaller.
        yield min(_encoded(opaque, PNG), next(photographs), key=lambda it: len(it.content))
    yield from photographs


def _preview_attempts(image: Image.Image) -> Iterator[Encoded]:
    for edge, quality in ((PREVIEW_EDGE, 80), (PREVIEW_EDGE, 55), (384, 50), (256, 40), (128, 40)):
        yield _encoded(_fitted(image, edge), WEBP, quality=quality)


def _first_within(most_bytes: int, attempts: Iterable[Encoded]) -> Encoded:
    for attempt in attempts:
        if len(attempt.content) <= most_bytes:
            return attempt
    raise UnsupportedFile("Couldn't reduce this image to a size that models accept. Upload a smaller one.")


def _on_white(image: Image.Image) -> Image.Image:
    """The image on a white page, for when transparency would take too many bytes."""
    if image.mode != "RGBA":
        return image
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _encoded(image: Image.Image, media_type: str, **options: Any) -> Encoded:
    raw = io.BytesIO()
    image.save(raw, media_type.removeprefix("image/"), **options)
    return Encoded(raw.getvalue(), media_type, *image.size)
