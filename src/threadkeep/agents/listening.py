"""What an agent says that another one runs: that one hears it, and the turn's user only after a handoff."""

from contextvars import ContextVar

from threadkeep.agents.replies import Usage


class Listener:
    """Hears what an agent says outside of its steps, and what its model calls use.

    What it says inside of a step would not be heard again when the turn runs again.
    """

    def __init__(self, outer: "Listener | None", *, passes_on: bool) -> None:
        self._outer = outer
        self._passes_on = passes_on
        """Whether the agent replies in place of the one that runs it."""
        self._texts: list[str] = []
        self._last = ""
        self._input_tokens = self._output_tokens = 0

    @property
    def is_shown(self) -> bool:
        """Whether the turn's user sees what the agent says."""
        return self._passes_on and (self._outer is None or self._outer.is_shown)

    @property
    def text(self) -> str:
        """All that the agent has said."""
        return "".join(self._texts)

    @property
    def usage(self) -> tuple[int, int]:
        """The input and output tokens of its model calls."""
        return self._input_tokens, self._output_tokens

    def hear(self, text: str) -> None:
        """The agent says something."""
        self._texts.append(text)
        self._last = ""
        if self._passes_on and self._outer is not None:
            self._outer.hear(text)

    def hear_model(self, text: str) -> None:
        """A model of the agent replies, and the agent says that."""
        self._texts.append(text)
        self._last = text
        if self._passes_on and self._outer is not None:
            self._outer.hear_model(text)

    def count(self, usage: Usage) -> None:
        """A model call of the agent, or of one that it runs, has used something."""
        self._input_tokens += usage.input_tokens
        self._output_tokens += usage.output_tokens
        if self._outer is not None:
            self._outer.count(usage)

    def unsaid(self, text: str | None) -> str:
        """What the agent's function has returned as its text and the agent has not said yet."""
        return "" if text is None or (self._last and self._last.strip() == text.strip()) else text


current_listener: ContextVar[Listener | None] = ContextVar("current_listener", default=None)
