"""A value that is used but never shown, such as a key that a server asks for."""

from collections.abc import Iterable
from typing import final

MASK = "••••••••"

# Shorter texts also occur in ordinary words; hiding those would only make an error unreadable.
_SHORTEST_HIDDEN = 4


class Secret:
    """Never appears in a log, an error or a response, and no encoder accepts it by accident.

    Two are equal only if that is known without decrypting them.
    """

    __slots__ = ("_kept",)

    def __init__(self, kept: str) -> None:
        self._kept = kept

    def reveal(self) -> str:
        """The value itself, for the one place that passes it on; SecretUnreadable if its key is missing."""
        return self._kept

    @property
    def stored_form(self) -> str:
        """What changes with it and doesn't reveal it, for one from the database: there it is encrypted."""
        return self._kept

    @final
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and type(self) is type(other) and self._kept == other._kept

    @final
    def __hash__(self) -> int:
        return hash((type(self), self._kept))

    @final
    def __repr__(self) -> str:
        return f"Secret({MASK})"


def hide_secrets(text: str, secrets: Iterable[Secret]) -> str:
    """A text of somebody who knows these secrets, such as an error or a log, without them."""
    for value in sorted({secret.reveal() for secret in secrets}, key=len, reverse=True):
        if len(value) >= _SHORTEST_HIDDEN:
            text = text.replace(value, MASK)
    return text
