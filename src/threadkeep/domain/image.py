"""How large an image may be for a model, and how many tokens it costs there.

The figures are the providers' own, of November 2026, and only for estimates: the provider's count is final.
"""

from math import ceil
from typing import assert_never

from threadkeep.domain.choice import Choice

MOST_PIXELS = 50_000_000
"""The largest original: what phones take. A larger one is refused by its header, before decoding."""
MODEL_EDGE = 1568
"""The longest edge that every Claude model accepts as is; OpenAI shrinks to 2048 and 768.

It also stays below 2000, Claude's maximum in a request of more than 20 images.
"""
MODEL_BYTES = 3_500_000
"""Anthropic accepts 5 MB as base64, which is 3.75 MB; OpenAI accepts more."""
PREVIEW_EDGE = 512
PREVIEW_BYTES = 60_000

_CLAUDE_PATCH = 28
_TILE, _TILE_TOKENS, _TILES_BASE = 512, 170, 85
_TILED_LONGER, _TILED_SHORTER = 2048, 768
_PATCH, _MOST_PATCHES, _PATCH_TOKENS = 32, 1536, 1.62


class ImageTokenRule(Choice):
    """How a family of models counts an image."""

    ANTHROPIC = "anthropic"
    """Patches of 28 × 28. Models before Opus 4.7 shrink to about 1568 of them; this estimate counts all."""
    OPENAI_TILES = "openai_tiles"
    """GPT-4o, GPT-4.1 and the like: 85, plus 170 for each tile of 512 × 512; others take a little less."""
    OPENAI_PATCHES = "openai_patches"
    """GPT-4.1 mini, o4-mini, GPT-5.4 mini and the like: at most 1536 patches of 32 × 32, at 1.62 each."""


def shrunk(width: int, height: int, *, longest_edge: int) -> tuple[int, int]:
    """An image's size with its longer edge limited, in the same proportions; never enlarged."""
    longer = max(width, height)
    if longer <= longest_edge:
        return width, height
    scale = longest_edge / longer
    return max(1, round(width * scale)), max(1, round(height * scale))


def image_bytes(width: int, height: int) -> int:
    """The approximate bytes of a detailed photograph of this size, after we have shrunk it."""
    width, height = shrunk(width, height, longest_edge=MODEL_EDGE)
    return min(width * height // 2, MODEL_BYTES)


def image_tokens(width: int, height: int, family: ImageTokenRule = ImageTokenRule.ANTHROPIC) -> int:
    """What an image of this size costs in a request, after we have shrunk it."""
    width, height = shrunk(width, height, longest_edge=MODEL_EDGE)
    match family:
        case ImageTokenRule.ANTHROPIC:
            return _count(width, height, _CLAUDE_PATCH)
        case ImageTokenRule.OPENAI_TILES:
            return _tile_tokens(width, height)
        case ImageTokenRule.OPENAI_PATCHES:
            return _patch_tokens(width, height)
        case _:
            assert_never(family)


def _tile_tokens(width: int, height: int) -> int:
    width, height = shrunk(width, height, longest_edge=_TILED_LONGER)
    scale = min(1.0, _TILED_SHORTER / min(width, height))
    return _TILES_BASE + _TILE_TOKENS * _count(round(width * scale), round(height * scale), _TILE)


def _patch_tokens(width: int, height: int) -> int:
    return ceil(min(_count(width, height, _PATCH), _MOST_PATCHES) * _PATCH_TOKENS)


def _count(width: int, height: int, side: int) -> int:
    """How many squares cover an image."""
    return ceil(width / side) * ceil(height / side)
