"""What a provider's server turns out to reject: many speak the same API, and hardly one speaks all of it."""

from dataclasses import dataclass


@dataclass(slots=True)
class ProviderQuirks:
    """What a server accepts for one model: everything, until a refusal says otherwise."""

    takes_cache_key: bool = True
    takes_cache_marks: bool = True
    takes_max_tokens: bool = True
    """Otherwise it is called `max_completion_tokens`."""
    takes_stream_options: bool = True
    takes_temperature: bool = True
    """Newer models choose it themselves."""

    def learn(self, reason: str) -> None:
        """Looks in a refusal for what to omit or rename."""
        for word, quirk in _NAMED_IN_REFUSALS.items():
            if word in reason:
                setattr(self, quirk, False)


_NAMED_IN_REFUSALS = {
    "cache_control": "takes_cache_marks",
    "max_completion_tokens": "takes_max_tokens",
    "prompt_cache_key": "takes_cache_key",
    "stream_options": "takes_stream_options",
    "temperature": "takes_temperature",
}
