"""Errors of models that the SDKs of providers raise, in the words of Threadkeep's own calls."""

import json
import re
from typing import Any, cast

from threadkeep.agents.errors import ModelFailed
from threadkeep.domain.errors import BudgetExceeded, GenerationFailed, OutputInvalid
from threadkeep.domain.text import storable

MOST_REASON_CHARACTERS = 300
_OF_PROVIDERS = GenerationFailed.code
_OURS = {
    (_OF_PROVIDERS.lower(), "server_error"): _OF_PROVIDERS,
    (OutputInvalid.code.lower(), "server_error"): OutputInvalid.code,
    ("insufficient_quota", "rate_limit_error"): BudgetExceeded.code,  # OpenAI's own has another type
}
"""What `turn.openai()` says of our errors, as code and type, and their codes."""
_LASTING = "The model provider rejected"
"""How our gateways begin to say that another attempt changes nothing."""
_BUSY = frozenset((408, 409, 429, 503, 529))
_UNREACHABLE = ("ConnectionError", "ConnectError", "TimeoutError", "Timeout")
_SECRET = re.compile(r"[A-Za-z0-9_\-]{32,}|(?:sk|pk|key|token|bearer)[-_ ][^\s'\"]{4,}", re.IGNORECASE)


def model_failed(error: BaseException) -> ModelFailed | None:
    """What a turn ends with for an error of a provider's SDK; None if it is none."""
    if isinstance(error, ModelFailed):
        return error
    if isinstance(error, BaseExceptionGroup):  # one model after another has failed
        group = cast("BaseExceptionGroup[BaseException]", error)
        return model_failed(group.exceptions[-1])
    told = _told(getattr(error, "body", None))
    reason = _readable(told.get("message"))
    if (code := _OURS.get((str(told.get("code")), str(told.get("type"))))) is not None:
        is_passing = code == _OF_PROVIDERS and _LASTING not in reason
        return ModelFailed(reason, code, is_passing)
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _refused(status, told, reason)
    if type(error).__name__.endswith(_UNREACHABLE):
        return ModelFailed("Couldn't connect to the model provider.", _OF_PROVIDERS, True)
    if told:  # in the middle of a reply
        return ModelFailed(_sentence("The model provider failed", reason), _OF_PROVIDERS, True)
    return None


def broke_off(reason: str | None = None) -> ModelFailed:
    """What it ends with for a reply that ended early."""
    return ModelFailed(_sentence("The model's response ended early", _readable(reason)), _OF_PROVIDERS, True)


def _refused(status: int, told: dict[str, Any], reason: str) -> ModelFailed:
    if status in (401, 403):  # what they say may quote the key
        return ModelFailed("The model provider rejected the API key.", _OF_PROVIDERS, False)
    is_used_up = "insufficient_quota" in (told.get("code"), told.get("type"))
    if (status in _BUSY or status >= 500) and not is_used_up:
        problem = "is busy" if status in _BUSY else "failed"
        return ModelFailed(_sentence(f"The model provider {problem} ({status})", reason), _OF_PROVIDERS, True)
    told_so = f"The model provider rejected the request ({status})"
    return ModelFailed(_sentence(told_so, reason), _OF_PROVIDERS, False)


def _told(body: object) -> dict[str, Any]:
    """A provider's error, in whatever it is wrapped."""
    if isinstance(body, str | bytes):
        try:
            body = json.loads(body)
        except ValueError:
            return {}
    if not isinstance(body, dict):
        return {}
    fields = cast("dict[str, Any]", body)
    inner = fields.get("error")
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields


def _readable(message: object) -> str:
    """A provider's own words, in one line, and without anything that may be a key."""
    if not isinstance(message, str) or message.lstrip().startswith("<"):
        return ""
    return _SECRET.sub("***", " ".join(storable(message).split()))


def _sentence(what: str, reason: str) -> str:
    if not reason:
        return f"{what}."
    if len(reason) > MOST_REASON_CHARACTERS:
        reason = f"{reason[: MOST_REASON_CHARACTERS - 1]}…"
    return f"{what}: {reason}" if reason.endswith((".", "!", "?", "…")) else f"{what}: {reason}."
