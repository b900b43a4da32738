"""A closed set of words, such as roles and states."""

from enum import StrEnum

from threadkeep.domain.errors import InvalidRequest


class Choice(StrEnum):
    """An enumeration that refuses an unknown word with the words that are allowed."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        allowed = ", ".join(f"`{member}`" for member in cls)
        raise InvalidRequest(f"{value!r} is not one of {allowed}.")
