"""What a turn is about: the same whenever its function runs."""

from datetime import UTC, datetime

from threadkeep.agents.run import FunctionRun
from threadkeep.wire.programs import ProgramTool, StartConversation, StartFile, StartMessage, StartUser


class TurnFacts:
    """What a turn began with."""

    def __init__(self, run: FunctionRun) -> None:
        self._run = run
        self._start = run.start

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
    def is_suspending(self) -> bool:
        """Whether the turn is about to wait for its user: its function will start again from the top."""
        return self._run.cancelled == "pause"

    def now(self) -> datetime:
        """The time of the last thing that was recorded: the same when the function runs again."""
        return datetime.fromtimestamp(self._run.now_ms / 1000, UTC)
