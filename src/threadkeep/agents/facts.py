"""What a turn is about: the same whenever its function runs."""

from datetime import UTC, datetime
from typing import Any

from threadkeep.agents.errors import NotInAStep, TurnMisused
from threadkeep.agents.listening import current_listener
from threadkeep.agents.run import FunctionRun, current_step
from threadkeep.wire.programs import (
    ProgramTool,
    Start,
    StartConversation,
    StartFile,
    StartMessage,
    StartUser,
)

OPENAI_PATH = "/api/runs/v1"
"""Where the server has its models, as OpenAI's SDKs call them."""


class TurnFacts:
    """What a turn began with."""

    def __init__(self, run: FunctionRun, start: Start | None = None) -> None:
        self._run = run
        self._start = start or run.start

    @property
    def function_run(self) -> FunctionRun:
        """The run that this is a view of."""
        return self._run

    @property
    def id(self) -> str:
        """The turn's id."""
        return self._start.turn

    @property
    def text(self) -> str:
        """What the user wrote."""
        return self._start.message.text

    @property
    def files(self) -> tuple[StartFile, ...]:
        """The files of the message."""
        return self._start.message.files

    @property
    def message(self) -> StartMessage:
        """The message that began the turn."""
        return self._start.message

    @property
    def user(self) -> StartUser:
        """Whose turn it is."""
        return self._start.user

    @property
    def conversation(self) -> StartConversation:
        """Where the turn runs."""
        return self._start.conversation

    @property
    def version(self) -> int:
        """The version of the code that began the turn, also if newer code continues it."""
        return self._start.version

    @property
    def model_id(self) -> str | None:
        """The model that the user chose."""
        return self._start.model

    @property
    def client_tools(self) -> tuple[ProgramTool, ...]:
        """The tools that the user's client brings along."""
        return self._start.client_tools

    @property
    def settings(self) -> dict[str, Any]:
        """What a built-in program knows of its agent, as that is now; empty for all others."""
        return self._start.settings

    @property
    def is_shown(self) -> bool:
        """Whether the user sees what the agent says: not where another agent runs it, which reads it."""
        listener = current_listener.get()
        return listener is None or listener.is_shown

    @property
    def is_suspending(self) -> bool:
        """Whether the turn is about to wait for its user: its function will start again from the top."""
        return self._run.cancelled == "pause"

    def openai(self, base_url: str | None = None) -> dict[str, Any]:
        """The address and the token of the server's models, for a step's own SDK: `OpenAI(**turn.openai())`.

        `base_url` is where this process reaches Threadkeep, for a host application that has mounted it.
        """
        step = current_step.get()
        if step is None or step.is_over or step.run is not self._run:
            raise NotInAStep(
                "`turn.openai()` works only inside a step: outside, a call would be made again whenever the "
                "function runs again."
            )
        if not self._start.token:
            raise TurnMisused("`turn.openai()` needs the server to have a THREADKEEP_SECRET_KEY.")
        url = base_url or self._start.url
        if not url:
            raise TurnMisused(
                "Nobody knows yet where this server listens. Pass `turn.openai(base_url=…)`, or set "
                "THREADKEEP_PUBLIC_URL."
            )
        return {"base_url": f"{url.rstrip('/')}{OPENAI_PATH}", "api_key": self._start.token}

    def now(self) -> datetime:
        """The time of the last thing that was recorded: the same when the function runs again."""
        return datetime.fromtimestamp(self._run.now_ms / 1000, UTC)
