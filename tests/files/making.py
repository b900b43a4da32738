"""Images as people and attackers send them, made by the test."""

import io
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from PIL import Image, ImageCms

PLACE = b"N51.5007 W0.1246"
DEVICE = "Ourphone 12"
Colour = tuple[int, ...]
RED, BLUE = (255, 0, 0), (0, 0, 255)


def encode(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of an image."""
    raw = io.BytesIO()
    image.save(raw, kind, **options)
    return raw.getvalue()


def photograph(width: int = 640, height: int = 480) -> Image.Image:
    """An image of many colours."""
    channels = [Image.effect_noise((width, height), spread) for spread in (40, 60, 80)]
    return Image.merge("RGB", channels)


def tall_red_above_blue() -> Image.Image:
    """40 × 80, the upper half red: shows whether an image stands upright."""
    image = Image.new("RGB", (40, 80), BLUE)
    image.paste(RED, (0, 0, 40, 40))
    return image


def noted(orientation: int = 1) -> Image.Exif:
    """What a camera notes: how it was held, its name, and the place."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x0110] = DEVICE
    exif[0x010E] = PLACE.decode()
    exif.get_ifd(0x8825)[1] = "N"
    return exif


def profile_of(space: str) -> bytes:
    """The profile of a colour space, as images carry it."""
    library: Any = ImageCms
    return library.ImageCmsProfile(library.createProfile(space)).tobytes()


def profile_that_swaps_red_and_blue() -> bytes:
    """A profile that shows at once whether it was heeded."""
    profile = profile_of("sRGB")
    places = [profile.index(name, 128) for name in (b"rXYZ", b"bXYZ")]
    red, blue = (profile[place + 4 : place + 12] for place in places)
    swapped = bytearray(profile)
    swapped[places[0] + 4 : places[0] + 12], swapped[places[1] + 4 : places[1] + 12] = blue, red
    return bytes(swapped)


def png_of(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of any chunks, whatever they say."""
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, *zip(*chunks, strict=True)))


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def png_bomb(width: int = 30_000, height: int = 30_000) -> bytes:
    """A PNG of a few kilobytes that decodes to as many pixels as it declares, one bit each."""
    rows = _packed_zeros((1 + (width + 7) // 8) * height)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return png_of((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))


def _packed_zeros(count: int) -> bytes:
    """So many zeros as zlib packs them: blocks that stand alone, of which one is made and repeated."""
    blocks, rest = divmod(count, 2**20)
    block = _packed(2**20, zlib.Z_FULL_FLUSH) if blocks else b""
    checksum = (count % 65_521) << 16 | 1
    return b"\x78\xda" + block * blocks + _packed(rest, zlib.Z_FINISH) + struct.pack(">I", checksum)


def _packed(count: int, ending: int) -> bytes:
    packing = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return packing.compress(bytes(count)) + packing.flush(ending)


def gif_bomb(frames: int = 20_000, size: int = 5_000) -> bytes:
    """A GIF of very many frames, each of which covers a large screen."""
    screen = b"GIF89a" + struct.pack("<HHBBB", size, size, 0x80, 0, 0) + b"\xff\x00\x00\x00\x00\xff"
    pixels = b"\x02\x02\x44\x01\x00"  # one pixel, then the end
    frame = b"!\xf9\x04\x04\x0a\x00\x00\x00" + b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + pixels
    return screen + frame * frames + b";"


def animation(colours: Iterable[Colour], kind: str = "GIF") -> bytes:
    """A moving image, a colour a frame."""
    first, *rest = (Image.new("RGB", (20, 10), colour) for colour in colours)
    return encode(first, kind, save_all=True, append_images=rest, duration=100)


def webp_declaring(width: int, height: int) -> bytes:
    """The header of a WebP canvas, and nothing that could be drawn on it."""
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + sizes
    return b"RIFF" + struct.pack("<I", len(body)) + body
