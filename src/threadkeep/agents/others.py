"""Other agents inside a turn: `await turn.agent("billing").run(…)` and `turn.handoff("billing")`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn, Protocol

from msgspec import Raw

from threadkeep.agents.agent import Agent
from threadkeep.agents.errors import TurnMisused
from threadkeep.agents.failures import leading, record
from threadkeep.agents.listening import Listener, current_listener
from threadkeep.agents.replies import Reply, Usage, text_and_value
from threadkeep.agents.run import FunctionRun
from threadkeep.agents.values import decode, encode, plain, with_article
from threadkeep.domain.text import one_line, storable
from threadkeep.wire.programs import (
    AgentClaim,
    AgentDone,
    AgentGranted,
    ModelReply,
    OfferedAgent,
    ProgramError,
    ProgramTool,
)

MOST_NAME_CHARACTERS = 100
MOST_ASKED_CHARACTERS = 1_000_000

_ASKED = {
    "type": "object",
    "properties": {
        "text": {
            "type": "string",
            "description": "What you want from the agent. It knows nothing but this text.",
        }
    },
    "required": ["text"],
    "additionalProperties": False,
}

RunOther = Callable[[str, str], Awaitable[Reply]]


class OtherAgent:
    """Another agent, which can run inside this turn."""

    def __init__(self, name: str, run: RunOther) -> None:
        self._name = name
        self._run = run

    async def run(self, text: str) -> Reply:
        """What the agent replies to a text. Its text is not shown: say or return it."""
        return await self._run(self._name, text)


class InnerTurn(Protocol):
    """The turn as an agent inside of it sees it."""

    async def say(self, text: str) -> None:
        """Shows a piece of the reply, or lets the agent hear it that runs this one."""
        ...

    async def reply_as_configured(self, most_rounds: int) -> Reply:
        """Replies as an agent without code does."""
        ...


MakeInner = Callable[[AgentGranted, Agent | None], InnerTurn]


async def run_other(
    run: FunctionRun, scope: str, name: str, text: str, make: MakeInner, *, is_handoff: bool
) -> Reply:
    """Runs another agent from its beginning to its recorded end, also if both are recorded already."""
    _check(name, text)
    called = f"turn.agent({name!r})"

    def begin(id_: int) -> AgentClaim:
        return AgentClaim(id_, name, storable(text), scope, is_handoff)

    granted = decode(await run.claim(called, begin), AgentGranted)
    listener = Listener(current_listener.get(), passes_on=is_handoff)
    token = current_listener.set(listener)
    try:
        # In a task of its own: what its code leaves in context variables, it leaves there.
        value = await asyncio.create_task(_live(run, granted, make, listener))
    except asyncio.CancelledError:
        if run.cancelled is None:  # the code that runs it no longer wants it
            run.watch(run.open(called, lambda id_: AgentDone(id_, granted.scope)))
        raise
    except Exception as exc:  # noqa: BLE001 - of the agent's code: it is recorded, and raised as such
        await _fail(run, called, granted, exc)
    finally:
        current_listener.reset(token)
    used = listener.usage
    replied = ModelReply(
        listener.text, model=granted.name, input_tokens=used[0], output_tokens=used[1], output=value
    )
    kept = decode(
        await run.claim(called, lambda id_: AgentDone(id_, granted.scope, value=Raw(encode(replied)))),
        ModelReply,
    )
    return Reply(
        text=kept.text,
        usage=Usage(granted.name, kept.input_tokens, kept.output_tokens),
        model=granted.name,
        stop_reason=kept.stop_reason,
        output=kept.output,
        is_shown=is_handoff,
    )


def _check(name: object, text: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME_CHARACTERS or one_line(name) != name:
        raise TurnMisused("An agent is named by its key, or by its id if it isn't in code.")
    if "/" in name:
        raise TurnMisused(f"An agent's key has no slash; not {name!r}.")
    if not isinstance(text, str):
        raise TurnMisused(f"An agent is given a text, not {with_article(type(text).__qualname__)}.")
    if not text.strip() or len(text) > MOST_ASKED_CHARACTERS:
        raise TurnMisused(f"An agent is given a text of 1 to {MOST_ASKED_CHARACTERS} characters.")


async def _live(run: FunctionRun, granted: AgentGranted, make: MakeInner, listener: Listener) -> object:
    """Runs its function; returns the value that its reply is, if it is one."""
    if granted.key is None:
        inner = make(granted, None)
        returned: object = await inner.reply_as_configured(granted.most_rounds)
    else:
        agent = run.threads.agent(granted.key)
        if agent is None or agent.version < granted.version:
            run.end_absent(granted.key, granted.version)
            raise run.cancelled_error()
        inner = make(granted, agent)
        assert run.call_function is not None
        returned = await run.call_function(run, inner)
    text, value = text_and_value(returned, granted.name)
    if unsaid := listener.unsaid(text):
        await inner.say(unsaid)
    return None if value is None else plain(value)


async def _fail(run: FunctionRun, called: str, granted: AgentGranted, error: Exception) -> NoReturn:
    """Records an agent's exception, and raises it as it is recorded."""
    recorded: ProgramError = record(leading(error))
    try:
        await run.claim(called, lambda id_: AgentDone(id_, granted.scope, error=recorded))
    except Exception as again:
        raise again from error
    raise AssertionError("an error is raised again")


# As tools of a model


def tools_of(offered: Sequence[OfferedAgent]) -> dict[str, tuple[str, ProgramTool]]:
    """The agents that a model may call, by the tools' names: by what name each runs, and the tool."""
    found: dict[str, tuple[str, ProgramTool]] = {}
    for it in offered:
        name = free = _tool_name(it.name)
        number = 2
        while free in found:
            free, number = f"{name}_{number}", number + 1
        told = f"Asks the agent {it.name}. {it.description}".strip()
        found[free] = it.id, ProgramTool(free, told, _ASKED)
    return found


def _tool_name(name: str) -> str:
    bare = "".join(it.lower() if it.isascii() and it.isalnum() else " " for it in name)
    return f"ask_{'_'.join(bare.split()) or 'agent'}"[:60]


def asked_text(arguments: dict[str, Any]) -> str:
    """What a model asks an agent; raises ValueError with a sentence for the model."""
    text = arguments.get("text")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("Pass what you want from the agent as `text`.")
    return text
