"""What somebody writes to break those who read it, and how hard we try.

In the tests the examples are few and the same every time. `make fuzz MINUTES=…` draws others in every round,
more of them and longer ones (`THREADKEEP_FUZZ_EXAMPLES`).
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tests.hostile.texts import NAMES, UNSTORABLE_NAMES, hostile_text

EXAMPLES_NAME = "THREADKEEP_FUZZ_EXAMPLES"
LONG_RUN = int(os.environ.get(EXAMPLES_NAME, "0"))
LONGEST = 20_000 if LONG_RUN else 2_000

HOSTILE = st.builds(hostile_text, st.sampled_from([*NAMES, *UNSTORABLE_NAMES]), st.integers(1, LONGEST))
"""Hostile text, halves of surrogate pairs and NUL included."""

TEXT = HOSTILE | st.text(st.characters(exclude_categories=()), max_size=30)
STORABLE = TEXT.map(lambda text: text.encode("utf-8", "replace").decode())
"""What a database can have kept: text without halves of pairs."""

BYTES = st.binary(max_size=60) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))


def values(*names: str) -> st.SearchStrategy[Any]:
    """JSON of any shape, with these names in its objects."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
    keys = st.sampled_from(names) | st.text(max_size=5) if names else TEXT
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=12,
    )


def objects(
    needed: Mapping[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have what is needed, and some of the rest."""
    return st.fixed_dictionaries({**needed}, optional=optional)


def bounded(examples: int) -> settings:
    """So many examples in the tests, and what the long run asks for in that."""
    return settings(
        max_examples=LONG_RUN or examples,
        derandomize=not LONG_RUN,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if LONG_RUN else [Phase.generate],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
            HealthCheck.function_scoped_fixture,
        ],
    )


def dumped(value: Any) -> bytes:
    """JSON as anybody may write it: half a pair as an escape, and numbers that JSON has not."""
    return json.dumps(value).encode()


def with_type(kind: Any, *more: dict[str, Any]) -> dict[str, Any]:
    """An object that says what it is, and more."""
    return {"type": kind, **{name: value for fields in more for name, value in fields.items()}}
