"""What becomes of an image: upright, small, without metadata; and what is refused. In this process."""

import io
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.files.making import (
    BLUE,
    DEVICE,
    PLACE,
    RED,
    Colour,
    animation,
    encode,
    gif_bomb,
    noted,
    photograph,
    png_bomb,
    png_of,
    profile_of,
    profile_that_swaps_red_and_blue,
    tall_red_above_blue,
    webp_declaring,
)
from threadkeep.domain.errors import UnsupportedFile
from threadkeep.domain.file import JPEG, PNG, WEBP, detect
from threadkeep.domain.image import MODEL_BYTES, MODEL_EDGE, PREVIEW_BYTES, PREVIEW_EDGE
from threadkeep.files.images import TOO_LARGE, UNREADABLE, Encoded, Renditions, render

SCRIPT = b"<script>alert(1)</script>"
TURNED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How a camera stores an upright image with each orientation."""


def rendered(content: bytes) -> Renditions:
    """What becomes of an image, and that it fits and is what it says."""
    found = render(io.BytesIO(content))
    assert max(found.model.width, found.model.height) <= MODEL_EDGE
    assert max(found.preview.width, found.preview.height) <= PREVIEW_EDGE
    assert len(found.model.content) <= MODEL_BYTES
    assert len(found.preview.content) <= PREVIEW_BYTES
    for it in (found.model, found.preview):
        assert detect(it.content, "x") == it.media_type
        assert opened(it).size == (it.width, it.height)
    return found


def opened(image: Encoded) -> Image.Image:
    """A rendition, decoded."""
    decoded = Image.open(io.BytesIO(image.content))
    decoded.load()
    return decoded


def colour(image: Encoded, across: float, down: float) -> Colour:
    """The colour at a place of a rendition, from 0 to 1."""
    at = int(image.width * across), int(image.height * down)
    found: Any = opened(image).convert("RGB").getpixel(at)
    return found


def is_near(one: Colour, other: Colour, most: int = 40) -> bool:
    return all(abs(a - b) <= most for a, b in zip(one, other, strict=True))


def refusal(content: bytes) -> str:
    with pytest.raises(UnsupportedFile) as refused:
        render(io.BytesIO(content))
    return refused.value.message


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_image_stands_upright(kind: str, orientation: int):
    turn, stored = TURNED[orientation], tall_red_above_blue()
    stored = stored.transpose(turn) if turn is not None else stored
    found = rendered(encode(stored, kind, exif=noted(orientation)))
    assert (found.width, found.height) == (found.model.width, found.model.height) == (40, 80)
    for image in (found.model, found.preview):
        assert is_near(colour(image, 0.5, 0.2), RED)
        assert is_near(colour(image, 0.5, 0.8), BLUE)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_senseless_orientation_is_passed_over(orientation: int):
    found = rendered(encode(tall_red_above_blue(), "JPEG", exif=noted(orientation)))
    assert (found.width, found.height) == (40, 80)


def test_damaged_notes_of_the_camera_are_passed_over():
    content = encode(tall_red_above_blue(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff\xff")
    assert rendered(content).height == 80


def test_nothing_but_pixels_is_kept():
    text = PLACE.decode()
    profile = profile_of("sRGB")
    for content in (
        encode(photograph(), "JPEG", exif=noted(), comment=text, icc_profile=profile, xmp=PLACE),
        encode(photograph(), "PNG", exif=noted(), icc_profile=profile),
        encode(photograph(), "WEBP", exif=noted(), icc_profile=profile, xmp=PLACE),
        encode(tall_red_above_blue(), "GIF", comment=text),
    ):
        assert PLACE in content
        found = rendered(content)
        for it in (found.model, found.preview):
            assert PLACE not in it.content
            assert DEVICE.encode() not in it.content
            assert not opened(it).getexif()
            assert not {"icc_profile", "comment", "xmp", "exif"} & opened(it).info.keys()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_hides_behind_or_inside_an_image_is_gone(kind: str):
    found = rendered(encode(photograph(64, 64), kind) + SCRIPT + b"PK\x03\x04%PDF-1.7")
    for it in (found.model, found.preview):
        assert SCRIPT not in it.content
        assert b"%PDF-" not in it.content


def test_large_photograph_is_shrunk_to_what_models_take():
    found = rendered(encode(photograph(3136, 2000), "JPEG"))
    assert (found.width, found.height) == (3136, 2000)
    assert (found.model.width, found.model.height) == (1568, 1000)
    assert found.model.media_type == JPEG
    assert (found.preview.width, found.preview.media_type) == (PREVIEW_EDGE, WEBP)


def test_small_image_is_not_enlarged():
    found = rendered(encode(photograph(30, 20)))
    assert (found.model.width, found.preview.width) == (30, 30)


def test_very_thin_image_keeps_a_pixel():
    found = rendered(encode(Image.new("L", (20_000, 2))))
    assert (found.model.width, found.model.height) == (1568, 1)


def test_diagram_and_transparency_stay_lossless():
    assert rendered(encode(tall_red_above_blue())).model.media_type == PNG
    transparent = photograph(200, 100)
    transparent.putalpha(Image.linear_gradient("L").resize((200, 100)))
    found = rendered(encode(transparent))
    assert found.model.media_type == PNG
    assert opened(found.model).mode == opened(found.preview).mode == "RGBA"


def test_screenshot_of_many_colours_stays_lossless_where_that_is_smaller():
    screenshot = Image.linear_gradient("L").resize((600, 400)).convert("RGB")
    screenshot.paste(photograph(70, 70), (5, 5))
    assert screenshot.getcolors(4096) is None
    assert rendered(encode(screenshot)).model.media_type == PNG
    assert rendered(encode(screenshot, "JPEG")).model.media_type == JPEG


def test_opaque_transparency_of_a_photograph_is_dropped():
    opaque = photograph()
    opaque.putalpha(255)
    assert rendered(encode(opaque)).model.media_type == JPEG


def test_noise_with_transparency_still_fits():
    random.seed(1)
    noise = Image.frombytes("RGBA", (1568, 1568), random.randbytes(1568 * 1568 * 4))
    assert rendered(encode(noise, compress_level=1)).model.media_type == JPEG


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_mode_of_png_can_be_read(mode: str):
    grey = Image.new("L", (64, 64), 255 if mode == "1" else 128)
    image = grey.convert(mode) if mode != "I;16" else Image.new("I;16", (64, 64), 0x8000)
    found = rendered(encode(image))
    expected = (255, 255, 255) if mode == "1" else (128, 128, 128)
    assert is_near(colour(found.model, 0.5, 0.5), expected, 8)


@pytest.mark.parametrize(("mode", "key"), [("L", 128), ("RGB", (128, 128, 128)), ("P", 128)])
def test_colour_that_stands_for_transparency_is_transparent(mode: str, key: Any):
    image = Image.new("L", (64, 64), 128).convert(mode)
    assert opened(rendered(encode(image, transparency=key)).model).getpixel((9, 9)) == (128, 128, 128, 0)


def test_cmyk_jpeg_can_be_read():
    found = rendered(encode(Image.new("CMYK", (64, 64), (0, 255, 255, 0)), "JPEG"))
    assert is_near(colour(found.model, 0.5, 0.5), RED)


def test_colours_are_converted_from_their_profile():
    found = rendered(encode(tall_red_above_blue(), icc_profile=profile_that_swaps_red_and_blue()))
    assert is_near(colour(found.model, 0.5, 0.2), BLUE)
    assert is_near(colour(found.model, 0.5, 0.8), RED)


def test_senseless_profile_is_passed_over():
    for profile in (profile_of("LAB"), b"no profile"):
        found = rendered(encode(tall_red_above_blue(), icc_profile=profile))
        assert is_near(colour(found.model, 0.5, 0.2), RED)


def test_first_picture_of_a_jpeg_with_several_is_shown():
    # Phones send such files: a second picture holds the depth or the brightness.
    several = encode(tall_red_above_blue(), "MPO", save_all=True, append_images=[photograph(40, 80)])
    assert detect(several, "x") == JPEG
    assert is_near(colour(rendered(several).model, 0.5, 0.2), RED)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_animation_shows_its_first_frame(kind: str):
    found = rendered(animation([RED, BLUE, (0, 255, 0)], kind))
    assert is_near(colour(found.model, 0.5, 0.5), RED)
    assert not getattr(opened(found.model), "is_animated", False)


def test_animated_bomb_costs_one_frame():
    assert rendered(gif_bomb()).width == 5_000


@pytest.mark.parametrize(
    "content",
    [png_bomb(), png_bomb(8_000, 7_000), gif_bomb(1, 30_000), webp_declaring(16_000, 16_000)],
    ids=["png 30000", "png 56 megapixels", "gif", "webp"],
)
def test_bomb_is_refused_by_its_header(content: bytes):
    assert len(content) < 200_000
    assert refusal(content) == TOO_LARGE


@pytest.mark.parametrize("kind", ["VP8 ", "VP8L"])
def test_size_of_plain_webp_is_read_from_its_header(kind: str):
    content = bytearray(encode(photograph(64, 64), "WEBP", lossless=kind == "VP8L"))
    assert content[12:16] == kind.encode()
    at = 26 if kind == "VP8 " else 21
    content[at : at + 4] = b"\xff\x3f\xff\x3f" if kind == "VP8 " else b"\xff\xff\xff\x0f"
    assert refusal(bytes(content)) == TOO_LARGE


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_truncated_image_is_refused(kind: str):
    content = encode(photograph(), kind)
    for share in (0.02, 0.3, 0.7):
        assert refusal(content[: int(len(content) * share)]) == UNREADABLE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html></html>",
        b"GIF89a=1/*" + SCRIPT,
        b"\x89PNG\r\n\x1a\n" + SCRIPT,
        png_of((b"IHDR", b"\0" * 13), (b"IEND", b"")),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        encode(photograph(8, 8), "TIFF"),
        encode(photograph(8, 8), "BMP"),
    ],
)
def test_what_is_no_image_of_ours_is_refused(content: bytes):
    assert refusal(content) == UNREADABLE


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["PNG", "JPEG", "WEBP", "GIF"]),
    at=st.floats(0, 1),
    written=st.binary(min_size=1, max_size=12),
)
def test_damaged_image_is_rendered_or_refused(kind: str, at: float, written: bytes):
    content = bytearray(encode(photograph(40, 30), kind, **({"exif": noted()} if kind != "GIF" else {})))
    place = int(at * (len(content) - 1))
    content[place : place + len(written)] = written
    try:
        rendered(bytes(content))
    except UnsupportedFile as exc:
        assert exc.message in {UNREADABLE, TOO_LARGE}
