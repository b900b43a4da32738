"""The key with which a client repeats a request safely."""

from starlette.requests import Request

from threadkeep.domain.errors import InvalidRequest

MOST_KEY_CHARACTERS = 255


def idempotency_key(request: Request) -> str | None:
    """The request's `Idempotency-Key`."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MOST_KEY_CHARACTERS:
        raise InvalidRequest(
            f"An Idempotency-Key must have 1 to {MOST_KEY_CHARACTERS} characters.", param="Idempotency-Key"
        )
    return key
