"""Whether a client says by itself that it repeats a request."""

from starlette.requests import Request

_COUNT_HEADERS = ("x-stainless-retry-count",)
"""How often the SDK has repeated the request: the SDKs of OpenAI and Anthropic send it, in every language."""


def is_retry(request: Request) -> bool:
    """Whether an SDK repeats a request whose response it didn't get."""
    counts = (request.headers.get(name, "") for name in _COUNT_HEADERS)
    return any(it.isdecimal() and it.isascii() and it.strip("0") for it in counts)
