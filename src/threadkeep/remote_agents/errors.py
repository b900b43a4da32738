"""How a run on another server fails: with a sentence for the user, and without anything secret."""

from threadkeep.agents.errors import ModelFailed
from threadkeep.domain.errors import GenerationFailed, GenerationInterrupted


class RemoteFailed(ModelFailed):
    """The other server can't be reached, refuses the run, or says what AG-UI doesn't allow."""

    def __init__(
        self, message: str, turn_code: str | None = GenerationFailed.code, is_retryable: bool = False
    ) -> None:
        super().__init__(message, turn_code, is_retryable)


class RunCutOff(RemoteFailed):
    """The run began and nobody knows how it ended."""

    def __init__(
        self, message: str, turn_code: str | None = GenerationInterrupted.code, is_retryable: bool = True
    ) -> None:
        super().__init__(message, turn_code, is_retryable)
