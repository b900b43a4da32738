"""Functions that are agents."""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast, overload

from threadkeep.agents.tool import Tool, as_tool
from threadkeep.domain.agent import (
    MOST_NAME_CHARACTERS,
    MOST_STARTER_CHARACTERS,
    MOST_STARTERS,
    AgentIcon,
    Visibility,
)
from threadkeep.domain.text import is_blank
from threadkeep.wire.programs import AgentDeclared, Effect

MOST_DESCRIPTION_CHARACTERS = 2_000
MOST_STEPS = 100_000
MOST_TIMEOUT_S = 24 * 60 * 60

_KEY = re.compile(r"[a-z][a-z0-9-]{0,63}")

AgentFunction = Callable[[Any], Any]
ChooseFunction = Callable[[str, Effect, Callable[..., Any]], Callable[..., Any]]
"""What runs instead of a step's function: by the step's name and effect, and its own function."""
NoteFailure = Callable[[BaseException], object]
"""Hears the exception that ends a turn."""


class Agent:
    """A function that runs the turns of an agent, and what the server shows of it."""

    def __init__(
        self, fn: AgentFunction, declaration: AgentDeclared, tools: tuple[Tool[..., Any], ...]
    ) -> None:
        self.fn = fn
        self.declaration = declaration
        self.tools = tools
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(fn))
        self._choose: ChooseFunction | None = None
        self._note_failure: NoteFailure | None = None
        functools.update_wrapper(cast("Any", self), fn)

    def __call__(self, turn: Any) -> Any:
        """Calls the function, as if it were no agent."""
        return self.fn(turn)

    def __repr__(self) -> str:
        return f"<agent {self.key} version {self.version}>"

    def with_functions(self, choose: ChooseFunction, note_failure: NoteFailure | None = None) -> "Agent":
        """The same agent for tests: `choose` says for each step what runs instead of its function, and
        `note_failure` hears the exceptions that end its turns.
        """
        chosen = Agent(self.fn, self.declaration, self.tools)
        chosen._choose, chosen._note_failure = choose, note_failure
        return chosen

    def note_failure(self, error: BaseException) -> None:
        """Its function has raised; only tests look at what that says."""
        if self._note_failure is not None:
            self._note_failure(error)

    def function_of(self, step: str, effect: Effect, fn: Callable[..., Any]) -> Callable[..., Any]:
        """What a step runs now: its own function, except in tests."""
        return fn if self._choose is None else self._choose(step, effect, fn)

    @property
    def key(self) -> str:
        """What identifies the agent for ever."""
        return self.declaration.key

    @property
    def version(self) -> int:
        """How new its code is."""
        return self.declaration.version


@overload
def agent(fn: AgentFunction, /) -> Agent: ...
@overload
def agent(
    *,
    key: str | None = None,
    name: str | None = None,
    description: str = "",
    version: int = 1,
    visibility: Literal["private", "public"] = "private",
    model: str | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    timeout_s: float = 300,
    max_steps: int = 1000,
    starters: Sequence[str] = (),
    icon: str | None = None,
) -> Callable[[AgentFunction], Agent]: ...
def agent(
    fn: AgentFunction | None = None,
    /,
    *,
    key: str | None = None,
    name: str | None = None,
    description: str = "",
    version: int = 1,
    visibility: Literal["private", "public"] = "private",
    model: str | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    timeout_s: float = 300,
    max_steps: int = 1000,
    starters: Sequence[str] = (),
    icon: str | None = None,
) -> Agent | Callable[[AgentFunction], Agent]:
    """Makes an agent of a function that takes a turn: `async def`, or `def`, which runs in a thread."""

    def decorate(fn: AgentFunction) -> Agent:
        _check_function(fn)
        own = fn.__name__
        known = tuple(map(as_tool, tools))
        declaration = AgentDeclared(
            key=own.replace("_", "-") if key is None else key,
            version=version,
            name=own.replace("_", " ").strip().capitalize() if name is None else name,
            description=description,
            visibility=visibility,
            model=model,
            tools=tuple(it.declaration for it in known),
            timeout_s=timeout_s,
            max_steps=max_steps,
            starters=tuple(starters),
            icon=icon,
        )
        _check(declaration)
        return Agent(fn, declaration, known)

    return decorate if fn is None else decorate(fn)


def _check_function(fn: AgentFunction) -> None:
    if not inspect.isfunction(fn):
        raise TypeError(f"`@agent` makes an agent of a function, not of {fn!r}. Write `@agent()` above it.")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"`{fn.__name__}` yields. An agent says what it shows: `await turn.say(text)`.")
    required = [it for it in inspect.signature(fn).parameters.values() if it.default is it.empty]
    if len(required) != 1 or required[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise TypeError(f"`{fn.__name__}` takes one argument, its turn: `async def {fn.__name__}(turn)`.")


def _check(it: AgentDeclared) -> None:
    if not _KEY.fullmatch(it.key):
        raise ValueError(
            "An agent's key is a small letter, then up to 63 small letters, digits and dashes; "
            f'not {it.key!r}. Give it one: `@agent(key="orders")`.'
        )
    _check_number("version", it.version, 1, 2**31 - 1)
    _check_number("max_steps", it.max_steps, 1, MOST_STEPS)
    if it.timeout_s is not None and not 0 < it.timeout_s <= MOST_TIMEOUT_S:
        raise ValueError(f"`timeout_s` is more than 0 and at most {MOST_TIMEOUT_S}; not {it.timeout_s!r}.")
    if is_blank(it.name) or len(it.name) > MOST_NAME_CHARACTERS or len(it.name.splitlines()) > 1:
        raise ValueError(
            f"An agent's name has 1 to {MOST_NAME_CHARACTERS} characters in one line; not {it.name[:60]!r}."
        )
    if len(it.description) > MOST_DESCRIPTION_CHARACTERS:
        raise ValueError(f"An agent's description has at most {MOST_DESCRIPTION_CHARACTERS} characters.")
    _check_choice("visibility", it.visibility, [choice.value for choice in Visibility])
    if it.icon is not None:
        _check_choice("icon", it.icon, [choice.value for choice in AgentIcon])
    if len(it.starters) > MOST_STARTERS:
        raise ValueError(f"An agent has at most {MOST_STARTERS} starters; not {len(it.starters)}.")
    for starter in it.starters:
        if is_blank(starter) or len(starter) > MOST_STARTER_CHARACTERS:
            raise ValueError(
                f"A starter has 1 to {MOST_STARTER_CHARACTERS} characters; not {starter[:60]!r}."
            )
    names = [tool.name for tool in it.tools]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"Two tools of agent {it.key!r} are named {twice!r}.")


def _check_number(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"`{name}` is a whole number from {least} to {most}; not {value!r}.")


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` is one of {', '.join(choices)}; not {value!r}.")


def check_keys(agents: Sequence[Agent]) -> None:
    """Refuses two agents with one key."""
    seen: dict[str, Agent] = {}
    for it in agents:
        if (other := seen.setdefault(it.key, it)) is not it:
            raise ValueError(
                f"Two agents have the key {it.key!r}: {_place(other)} and {_place(it)}. "
                "A key identifies one agent."
            )


def _place(it: Agent) -> str:
    code = inspect.unwrap(it.fn).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"
