"""A value that is used but never shown, such as a key that a server asks for."""

from typing import final

MASK = "••••••••"


class Secret:
    """Shows nothing of itself in a log, an error or an answer, and no encoder takes it by accident.

    Two are equal only where that is known without opening them.
    """

    __slots__ = ("_kept",)

    def __init__(self, kept: str) -> None:
        self._kept = kept

    def reveal(self) -> str:
        """The value itself, for the one place that hands it on. SecretUnreadable where its key is gone."""
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
