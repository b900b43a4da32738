"""JSON merge patch, RFC 7396."""

from typing import Any


def merge_patch(document: Any, patch: Any) -> Any:
    """Objects are merged, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged: dict[str, Any] = dict(document) if isinstance(document, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    for key, value in patch.items():  # pyright: ignore[reportUnknownVariableType]
        if value is None:
            merged.pop(key, None)  # pyright: ignore[reportUnknownArgumentType]
        else:
            merged[key] = merge_patch(merged.get(key), value)  # pyright: ignore[reportUnknownArgumentType]
    return merged
