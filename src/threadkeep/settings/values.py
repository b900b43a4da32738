"""Values of settings, as an operator writes them."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta

from threadkeep.domain.errors import SettingsError
from threadkeep.domain.text import is_blank

PREFIX = "THREADKEEP_"

Secret = Annotated[str | None, Meta(extra={"secret": True})]
"""A value that nothing prints."""


def value_in(environment: Mapping[str, str], name: str) -> str | None:
    """The value of a variable; None if it is missing or blank."""
    value = environment.get(name)
    return None if is_missing(value) else value


def is_missing(value: object) -> bool:
    """Whether a value counts as not set."""
    return value is None or (isinstance(value, str) and is_blank(value))


def list_in(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if not is_blank(part))


def split_url(url: str, name: str) -> SplitResult:
    """The parts of an address; the error for an invalid one doesn't repeat it: it may contain a password."""
    try:
        return urlsplit(url)
    except ValueError as exc:
        raise SettingsError(f"{PREFIX}{name} is not a valid URL.") from exc
