"""A closed set of words, such as roles and states."""

from enum import StrEnum

from threadkeep.domain.errors import InvalidRequest


class Choice(StrEnum):
    """An enumeration whose error for an unknown word lists the allowed ones."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        allowed = ", ".join(f"`{member}`" for member in cls)
        raise InvalidRequest(f"{value!r} is not one of {allowed}.")
