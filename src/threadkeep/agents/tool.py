"""Functions that a model may call, or that a person is asked about."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_args, overload

from threadkeep.agents.errors import NotJson
from threadkeep.agents.json_schemas import arguments_of, schema_of
from threadkeep.agents.values import Unstorable, convert, plain
from threadkeep.wire.programs import Effect, ProgramTool, StepAccess

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

MOST_DESCRIPTION_CHARACTERS = 10_000
EFFECTS: tuple[Effect, ...] = get_args(Effect)
ACCESSES: tuple[StepAccess, ...] = get_args(StepAccess)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Tool(Generic[P, R_co]):
    """A function with what a model needs to know to call it."""

    def __init__(
        self,
        fn: Callable[P, R_co],
        *,
        effect: Effect = "write",
        access: StepAccess = "allow",
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        self.fn = fn
        self.effect: Effect = effect
        self.access: StepAccess = access
        self.name = name or getattr(fn, "__name__", type(fn).__name__)
        check_effect(effect, access)
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"A tool's name is 1 to 64 letters, digits, `_` and `-`; not {self.name!r}.")
        self.description = (inspect.getdoc(fn) or "" if description is None else description)[
            :MOST_DESCRIPTION_CHARACTERS
        ]
        self._struct = arguments_of(fn, self.name)
        self.parameters = schema_of(self._struct)
        self.parameters.pop("title", None)
        functools.update_wrapper(cast("Any", self), fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Calls the function, as if it were no tool."""
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def declaration(self) -> ProgramTool:
        """What the server and a model know of it."""
        return ProgramTool(self.name, self.description, self.parameters, self.effect, self.access)

    def call(self, arguments: Mapping[str, Any], fn: Callable[..., Any] | None = None) -> Any:
        """Calls the function, or another one, with plain JSON values; raises Unstorable if they don't fit."""
        given = convert(dict(arguments), self._struct)
        return (fn or self.fn)(**{name: getattr(given, name) for name in self._struct.__struct_fields__})  # type: ignore[call-arg]

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, as plain JSON values."""
        bound = inspect.signature(self.fn).bind(*args, **kwargs)
        try:
            return cast("dict[str, Any]", plain(bound.arguments))
        except Unstorable as exc:
            raise NotJson(f"The arguments of `{self.name}` can't be shown to its user", str(exc)) from exc


@overload
def tool(fn: Callable[P, R_co], /) -> Tool[P, R_co]: ...
@overload
def tool(
    *, effect: Effect = "write", access: StepAccess = "allow", name: str | None = None
) -> Callable[[Callable[P, R_co]], Tool[P, R_co]]: ...
def tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "write",
    access: StepAccess = "allow",
    name: str | None = None,
) -> Any:
    """Makes a function a tool; its schema comes from its annotations, its description from its docstring."""
    if fn is not None:
        return Tool(fn)

    def decorate(it: Callable[..., Any]) -> Tool[..., Any]:
        return Tool(it, effect=effect, access=access, name=name)

    return decorate


def as_tool(given: Callable[..., Any]) -> Tool[..., Any]:
    """A tool, or a function as one."""
    return cast("Tool[..., Any]", given) if isinstance(given, Tool) else Tool(given)


def check_effect(effect: str, access: str) -> None:
    """Refuses what is no effect or no access."""
    if effect not in EFFECTS:
        raise ValueError(f"`effect` is one of {', '.join(EFFECTS)}; not {effect!r}.")
    if access not in ACCESSES:
        raise ValueError(f"`access` is one of {', '.join(ACCESSES)}; not {access!r}.")
