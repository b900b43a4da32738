"""Errors of providers, in words for people and without secrets."""

import email.utils
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from threadkeep.domain.text import storable
from threadkeep.ports.gateway import GatewayError, GatewayUnavailable, GatewayUnreachable

MOST_REASON_CHARACTERS = 300
LEAST_SECRET_CHARACTERS = 4  # anything shorter is a placeholder, and occurs in every word

KEY_REFUSED = "The model provider rejected the API key."
REGION_REFUSED = "The model provider doesn't accept this API key in this region or at this address"
BROKE_OFF = "The model's response ended early."

_BUSY = {408, 409, 429, 503, 529}
# Of the refusal of a key that is good elsewhere; others may quote the key.
_REGION_WORDS = ("region", "country", "territory", "hostname")
# For streams without a status: with these, retrying changes nothing.
_LASTING = ("invalid", "auth", "permission", "not_found", "too_large", "context", "billing", "quota", "image")


class Refused(GatewayError):
    """The provider rejects this request; `reason` is its own explanation."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class UnreadableReply(GatewayError):
    """The response is not what a model sends."""

    def __init__(self) -> None:
        super().__init__("The model's response couldn't be parsed.", retryable=True)


def broke_off() -> GatewayError:
    """The reply ended before it was complete."""
    return GatewayUnreachable(BROKE_OFF)


def refusal(status: int, body: bytes, *, after_s: float | None, secret: str) -> GatewayError:
    """The error for a response that is not a reply."""
    error = _find_error(body)
    reason = _readable(error.get("message"), secret)
    if status in (401, 403):
        is_elsewhere = any(word in f"{error.get('code')} {reason}".lower() for word in _REGION_WORDS)
        return GatewayError(_sentence(REGION_REFUSED, reason) if is_elsewhere else KEY_REFUSED)
    if 300 <= status < 400:
        return GatewayError(
            f"The model provider redirected the request ({status}). Check the gateway's address."
        )
    if _is_passing(status) and "insufficient_quota" not in (error.get("code"), error.get("type")):
        problem = "is busy" if status in _BUSY else "failed"
        message = _sentence(f"The model provider {problem} ({status})", reason)
        return GatewayUnavailable(message, after_s=after_s)
    return Refused(_sentence(f"The model provider rejected the request ({status})", reason), reason)


def stream_error(error: object, *, secret: str) -> GatewayError:
    """The error for one that arrived in the middle of a reply."""
    fields = _error_fields(error)
    code = fields.get("code")
    kinds = [str(fields.get(name) or "") for name in ("type", "code")]
    if code in (401, 403) or "authentication_error" in kinds:
        return GatewayError(KEY_REFUSED)
    reason = _readable(fields.get("message"), secret)
    message = _sentence("The model provider failed", reason)
    if isinstance(code, int):
        lasts = not _is_passing(code)
    else:
        lasts = any(word in kind for word in _LASTING for kind in kinds)
    return Refused(message, reason) if lasts else GatewayUnavailable(message)


def _is_passing(status: int) -> bool:
    return status in _BUSY or status >= 500


def busy_for_long(error: GatewayUnavailable, pause_s: float) -> GatewayUnavailable:
    """The error for a pause that nobody would wait for: it says when to try again."""
    return GatewayUnavailable(f"{error.message} Try again in {_rough_time(pause_s)}.", after_s=pause_s)


def _rough_time(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds)} s"


def no_stream(body: bytes, *, secret: str) -> GatewayError | None:
    """The error for a reply without a single event, if it is recognisable."""
    if body.lstrip().startswith(b"<"):
        return GatewayError(
            "The model provider returned a web page. Check the gateway's address.", retryable=True
        )
    if not body.lstrip().startswith((b"{", b"[")):
        return None
    error = _find_error(body)
    if _readable(error.get("message"), secret):
        return stream_error(error, secret=secret)
    return GatewayError("The model provider didn't stream its response.")


def pause_asked_for(headers: Mapping[str, str], clock: Callable[[], float]) -> float | None:
    """How long the provider asks us to wait, in seconds."""
    asked: float | None = None
    after = headers.get("retry-after", "")
    try:
        if "retry-after-ms" in headers:
            asked = float(headers["retry-after-ms"]) / 1000
        elif after[:1].isdigit():
            asked = float(after)
        elif after:
            asked = email.utils.parsedate_to_datetime(after).timestamp() - clock()
    except (ValueError, OverflowError):
        return None
    return max(asked, 0.0) if asked is not None and math.isfinite(asked) else None


def _readable(message: object, secret: str) -> str:
    """A provider's own words, on one line and without the key."""
    if isinstance(message, list | dict):
        message = json.dumps(message, ensure_ascii=False)
    if not isinstance(message, str) or message.lstrip().startswith("<"):
        return ""  # a proxy's page
    if len(secret) >= LEAST_SECRET_CHARACTERS:
        message = message.replace(secret, "***")
    return " ".join(storable(message).split())


def _sentence(what: str, reason: str) -> str:
    if not reason:
        return f"{what}."
    if len(reason) > MOST_REASON_CHARACTERS:
        reason = reason[: MOST_REASON_CHARACTERS - 1] + "…"
    return f"{what}: {reason}" if reason.endswith((".", "!", "?", "…")) else f"{what}: {reason}."


def _find_error(body: bytes) -> dict[str, Any]:
    text = body.decode("utf-8", "replace")
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return {"message": text}
    if isinstance(found, list):
        entries = cast("list[object]", found)  # as Google's servers send it
        found = entries[0] if entries else None
    fields = _error_fields(found)
    return _error_fields(fields.get("error") or fields.get("detail") or fields)


def _error_fields(error: object) -> dict[str, Any]:
    return cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
