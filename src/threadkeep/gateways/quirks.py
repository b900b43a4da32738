"""What a provider's server turns out to reject: many speak the same API, and hardly one speaks all of it."""

from dataclasses import dataclass


@dataclass(slots=True)
class ProviderQuirks:
    """What a server accepts for one model: everything, until a refusal says otherwise."""

    takes_cache_key: bool = True
    takes_cache_marks: bool = True
    takes_encrypted_reasoning: bool = True
    """Models that don't reason have none, and some servers can't read their own."""
    takes_output: bool = True
    """Whether it can hold a model to a JSON schema."""
    takes_max_tokens: bool = True
    """Otherwise it is called `max_completion_tokens`."""
    takes_reasoning_summary: bool = True
    """Models that don't reason refuse to be asked for it, and so does OpenAI in unverified accounts."""
    takes_stream_options: bool = True
    takes_temperature: bool = True
    """Newer models choose it themselves."""
    reasons_with_tools: bool = True
    """GPT-5.6 and later call tools over chat completions only if they don't reason."""

    def learn(self, reason: str) -> None:
        """Looks in a refusal for what to omit or rename."""
        reason = reason.lower()
        for word, quirk in _NAMED_IN_REFUSALS.items():
            if word in reason:
                setattr(self, quirk, False)


_NAMED_IN_REFUSALS = {
    "cache_control": "takes_cache_marks",
    "encrypted content": "takes_encrypted_reasoning",
    "encrypted_content": "takes_encrypted_reasoning",
    "max_completion_tokens": "takes_max_tokens",
    "prompt_cache_key": "takes_cache_key",
    "reasoning.summary": "takes_reasoning_summary",
    "reasoning summaries": "takes_reasoning_summary",
    "function tools with reasoning_effort": "reasons_with_tools",
    "stream_options": "takes_stream_options",
    "temperature": "takes_temperature",
}
