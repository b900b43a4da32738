"""Tools of frameworks, which the adapters for them give to `turn.call`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from threadkeep.agents.tool import Tool
from threadkeep.wire.programs import Effect, StepAccess


class ForeignTool(Tool[[dict[str, Any]], Awaitable[Any]]):
    """A framework's tool, which checks its arguments itself: its function is given them as a dict."""

    def __init__(
        self,
        fn: Callable[[dict[str, Any]], Awaitable[Any]],
        *,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        effect: Effect = "write",
        access: StepAccess = "allow",
    ) -> None:
        super().__init__(fn, effect=effect, access=access, name=name, description=description)
        self.parameters = dict(parameters or {"type": "object"})

    def call(self, arguments: Mapping[str, Any], fn: Callable[..., Any] | None = None) -> Any:
        """Calls the function, or another one, with the arguments as they are."""
        return (fn or self.fn)(dict(arguments))
