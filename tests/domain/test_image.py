"""How large an image is for a model, and what it costs there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.image import MODEL_BYTES, MODEL_EDGE, ImageTokenRule, image_tokens, shrunk

SIZES = st.integers(min_value=1, max_value=60_000)


def test_model_rendition_fits_into_five_megabytes_of_base64():
    assert MODEL_BYTES * 4 / 3 < 5_000_000


@pytest.mark.parametrize(
    ("size", "smaller"),
    [
        ((100, 50), (100, 50)),
        ((3136, 1568), (1568, 784)),
        ((4000, 3000), (1568, 1176)),
        ((60_000, 1), (1568, 1)),
    ],
)
def test_longer_edge_is_shrunk_and_nothing_is_enlarged(size: tuple[int, int], smaller: tuple[int, int]):
    assert shrunk(*size, longest_edge=MODEL_EDGE) == smaller


@given(SIZES, SIZES)
def test_shrunk_image_fits_and_keeps_its_proportions(width: int, height: int):
    small = shrunk(width, height, longest_edge=MODEL_EDGE)
    assert 1 <= min(small) <= max(small) <= max(MODEL_EDGE, 1)
    assert shrunk(*small, longest_edge=MODEL_EDGE) == small
    assert abs(small[0] * height - small[1] * width) <= max(width, height)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((200, 200), 64),
        ((1000, 1000), 1296),
        ((1092, 1092), 1521),
        ((1568, 1568), 3136),
        ((8000, 8000), 3136),
    ],
)
def test_claude_counts_patches_of_28_pixels(size: tuple[int, int], tokens: int):
    assert image_tokens(*size, ImageTokenRule.ANTHROPIC) == tokens


@given(SIZES.filter(lambda size: size >= 200), SIZES.filter(lambda size: size >= 200))
def test_patches_are_about_what_the_older_formula_gives(width: int, height: int):
    small = shrunk(width, height, longest_edge=MODEL_EDGE)
    if min(small) >= 200:
        assert image_tokens(width, height) == pytest.approx(small[0] * small[1] / 750, rel=0.3)


@pytest.mark.parametrize(
    # The examples of OpenAI's guide: 1024 × 1024 and 2048 × 4096; and one tile for a small image.
    ("size", "tokens"),
    [((128, 64), 255), ((512, 512), 255), ((1024, 1024), 765), ((2048, 4096), 1105), ((1568, 768), 1445)],
)
def test_openai_counts_tiles_of_512_pixels(size: tuple[int, int], tokens: int):
    assert image_tokens(*size, ImageTokenRule.OPENAI_TILES) == tokens


@pytest.mark.parametrize(("size", "tokens"), [((32, 32), 2), ((1024, 1024), 1659), ((4000, 4000), 2489)])
def test_openai_counts_patches_up_to_a_limit(size: tuple[int, int], tokens: int):
    assert image_tokens(*size, ImageTokenRule.OPENAI_PATCHES) == tokens


@given(SIZES, SIZES, st.sampled_from(ImageTokenRule))
def test_every_image_costs_something_and_none_costs_a_context_window(
    width: int, height: int, rule: ImageTokenRule
):
    assert 1 <= image_tokens(width, height, rule) <= 3136
