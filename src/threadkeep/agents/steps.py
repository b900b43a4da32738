"""Steps: functions that run once, whatever crashes."""

import asyncio
import functools
import inspect
import itertools
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from msgspec import Raw

from threadkeep.agents.errors import AgentError, AmbiguousStep, NotJson, StepResultInvalid, StepResultTooLarge
from threadkeep.agents.failures import record
from threadkeep.agents.output import text_item
from threadkeep.agents.replies import Result, Thought, Usage
from threadkeep.agents.run import FunctionRun, RunningStep, current_step
from threadkeep.agents.tool import Tool, check_effect
from threadkeep.agents.values import (
    MOST_RESULT_BYTES,
    Unstorable,
    class_of,
    content_hash,
    decode,
    encode,
    result_type,
)
from threadkeep.domain.text import one_line, storable
from threadkeep.wire.programs import (
    Effect,
    Run,
    StepAccess,
    StepClaim,
    StepDone,
    StepRepeats,
    TextItem,
    ThoughtItem,
    UsageClaim,
)

MOST_NAME_CHARACTERS = 128
MOST_TITLE_CHARACTERS = 200
MOST_RETRIES = 100
FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call of a function, as it is claimed."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    hash: str
    scope: str
    kind: Any
    """What it returns, by its annotation."""
    is_alike: bool
    """Whether equal arguments make two calls at once interchangeable."""
    effect: Effect
    access: StepAccess
    tool: Tool[..., Any] | None = None
    """Set if it is shown as a call of a tool."""
    arguments: dict[str, Any] | None = None
    call_id: str | None = None
    is_tool: bool = False
    timeout_s: float | None = None
    retries: int = 0
    title: str | None = None
    hidden: bool = False
    asks_if_unknown: bool = False

    @property
    def streams(self) -> bool:
        """Whether it says what it yields."""
        return inspect.isasyncgenfunction(self.fn) or inspect.isgeneratorfunction(self.fn)

    @property
    def place(self) -> tuple[str, str, str]:
        """What identifies it, but for how often it was claimed."""
        return self.scope, self.name, self.hash

    def claim(self, id_: int) -> StepClaim:
        """What the server is told of it."""
        return StepClaim(
            id=id_,
            name=self.name,
            hash=self.hash,
            scope=self.scope,
            effect=self.effect,
            access=self.access,
            is_tool=self.is_tool,
            streams=self.streams,
            title=self.title,
            hidden=self.hidden,
            arguments=self.arguments,
            call_id=self.call_id,
            schema=self.tool.parameters if self.tool is not None else None,
            timeout_s=self.timeout_s,
            asks_if_unknown=self.asks_if_unknown,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """What `turn.step` takes besides the function and its arguments."""

    effect: Effect = "write"
    access: StepAccess = "allow"
    name: str | None = None
    key: object = None
    timeout_s: float | None = None
    retries: int = 0
    title: str | None = None
    hidden: bool = False
    unknown: str = "raise"

    def check(self, name: str) -> None:
        """Raises ValueError with a sentence."""
        check_effect(self.effect, self.access)
        if self.unknown not in ("raise", "ask"):
            raise ValueError(f"`unknown` is raise or ask; not {self.unknown!r}.")
        if not 0 <= self.retries <= MOST_RETRIES:
            raise ValueError(f"`retries` is a number from 0 to {MOST_RETRIES}; not {self.retries!r}.")
        if self.retries and self.effect == "write":
            raise ValueError(
                f"Step `{name}` is a write, which is never repeated by itself. If it can be repeated, "
                'say so with `effect="idempotent"`; otherwise leave out `retries`.'
            )
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"`timeout_s` is more than 0; not {self.timeout_s!r}.")


def step_of(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], scope: str, options: StepOptions
) -> Step:
    """A call as a step; raises what tells its author what is wrong with it."""
    effect, access, name = options.effect, options.access, options.name
    if isinstance(fn, Tool):
        known = cast("Tool[..., Any]", fn)
        fn, effect, access, name = known.fn, known.effect, known.access, name or known.name
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn)
        fn, args, kwargs = fn.func, (*fn.args, *args), {**fn.keywords, **kwargs}
    name = _step_name(fn, name)
    options.check(name)
    tool = Tool(fn, effect=effect, access=access, name=_tool_name(name)) if access == "ask" else None
    return Step(
        fn=fn,
        args=args,
        kwargs=kwargs,
        name=name,
        hash=_hash(name, args, kwargs, options.key),
        scope=scope,
        kind=_result_type(fn, name),
        is_alike=options.key is None and bool(args or kwargs) and not _closes_over(fn),
        effect=effect,
        access=access,
        tool=tool,
        arguments=tool.named(args, kwargs) if tool is not None else None,
        timeout_s=options.timeout_s,
        retries=options.retries,
        title=None
        if options.title is None
        else _cut(one_line(storable(options.title)), MOST_TITLE_CHARACTERS),
        hidden=options.hidden,
        asks_if_unknown=options.unknown == "ask",
    )


def tool_step(tool: Tool[..., Any], arguments: dict[str, Any], call_id: str | None, scope: str) -> Step:
    """A call of a tool that a model asked for, or the code by its name."""
    return Step(
        fn=tool.fn,
        args=(),
        kwargs={},
        name=tool.name,
        hash=content_hash(call_id) if call_id is not None else _hash(tool.name, (), arguments, None),
        scope=scope,
        kind=_result_type(tool.fn, tool.name),
        is_alike=call_id is None,
        effect=tool.effect,
        access=tool.access,
        tool=tool,
        arguments=arguments,
        call_id=call_id,
        is_tool=True,
    )


def _step_name(fn: Callable[..., Any], given: str | None) -> str:
    name = given if given is not None else getattr(fn, "__qualname__", "")
    if given is None and (not name or name.endswith("<lambda>")):
        raise ValueError(
            'A step is known by its function\'s name. Give this one a name: `turn.step(fn, name="…")`.'
        )
    if (
        not 0 < len(name) <= MOST_NAME_CHARACTERS
        or one_line(name) != name
        or "/" in name
        or not name.isprintable()
    ):
        raise ValueError(
            f"A step's name has 1 to {MOST_NAME_CHARACTERS} characters in one line, and no slash; "
            f"not {_cut(name, 60)!r}."
        )
    return name


def _tool_name(name: str) -> str:
    """A step's name as that of a tool."""
    bare = name.rpartition("<locals>.")[2]
    return "".join(it if it.isascii() and (it.isalnum() or it in "_-") else "_" for it in bare)[:64]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _hash(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], key: object) -> str:
    try:
        if key is not None:
            return content_hash({"key": key})
        return content_hash([args, kwargs] if kwargs else args)
    except Unstorable as exc:
        what = "key" if key is not None else "arguments"
        raise NotJson(
            f"The {what} of step `{name}` can't be written as JSON: {exc}. Pass plain values, and keep "
            "clients and handles in globals or closures; or give the step a `key`."
        ) from exc


def _result_type(fn: Callable[..., Any], name: str) -> Any:
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        return Any
    try:
        return result_type(fn)
    except Unstorable as exc:
        raise NotJson(f"What step `{name}` returns can't be known: {exc}.") from exc


def _closes_over(fn: Callable[..., Any]) -> bool:
    """Whether something besides its arguments decides what a function does."""
    if inspect.ismethod(fn):
        return not inspect.isclass(fn.__self__)
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return code is None or bool(code.co_freevars)


class OpenSteps:
    """The steps of one run whose functions run or wait to."""

    def __init__(self) -> None:
        self._open = defaultdict[tuple[str, str, str], list[Step]](list)

    def add(self, step: Step) -> None:
        """Refuses a step that nothing tells apart from one that is open."""
        alike = self._open[step.place]
        if not all(_is_same(it, step) for it in alike):
            bare = step.name.rpartition(".")[2]
            how = (
                "and take no arguments"
                if not (step.args or step.kwargs)
                else "with equal arguments, though the function uses other variables, too"
            )
            raise AmbiguousStep(
                f"Two steps named `{step.name}` run at once {how}. Pass the values as arguments, "
                f"`turn.step({bare}, value)`, or give each a `key` of its own."
            )
        alike.append(step)

    def remove(self, step: Step) -> None:
        """A step has ended."""
        self._open[step.place] = [it for it in self._open[step.place] if it is not step]
        if not self._open[step.place]:
            del self._open[step.place]


def _is_same(one: Step, other: Step) -> bool:
    """Whether it makes no difference which of two calls gets which result."""
    if inspect.ismethod(one.fn) and one.fn == other.fn:
        return bool(one.args or one.kwargs)
    return one.is_alike and other.is_alike


async def take(run: FunctionRun, open_steps: OpenSteps, step: Step) -> Any:
    """Claims a step, runs it if the server says so, and returns what is recorded of it."""
    await run.check()
    run.check_outside_step(f"The step `{step.name}`")
    open_steps.add(step)
    try:
        async with run.place():
            return _read(step, await _taken(run, step))
    finally:
        open_steps.remove(step)


async def _taken(run: FunctionRun, step: Step) -> Raw:
    id_ = run.open(step.name, step.claim)
    cause: BaseException | None = None
    try:
        answer = await run.answer(id_)
        if isinstance(answer, Run):
            done, cause = await _Attempts(run, step, answer).done()
            run.reopen(id_)
            run.send(done)
            answer = await run.answer(id_)
    except Exception as exc:
        if cause is not None and cause is not exc:
            raise exc from cause  # the first run has more to show than the record
        raise
    finally:
        run.close(id_)
    assert not isinstance(answer, Run)
    return answer.value


def _read(step: Step, value: Raw) -> Any:
    try:
        return decode(value, step.kind)
    except Unstorable as exc:
        raise StepResultInvalid(
            f"What is recorded of `{step.name}` isn't what it says it returns: {exc}."
        ) from exc


class _Attempts:
    """The function of one step, run now, until it returns or may not be repeated."""

    def __init__(self, run: FunctionRun, step: Step, go: Run) -> None:
        self._run = run
        self._step = step
        self._go = go
        self._running = RunningStep(run, go.re, step.name, go.idempotency_key)

    async def done(self) -> tuple[StepDone, BaseException | None]:
        """How it ended, and the exception if it failed."""
        token = current_step.set(self._running)
        began = time.monotonic()
        try:
            value, error = await self._until_final()
        except BaseException:
            self._run.send(StepDone(self._go.re))
            raise
        finally:
            self._running.is_over = True
            current_step.reset(token)
        took_ms = round((time.monotonic() - began) * 1000)
        if error is not None:
            is_shown = isinstance(error, AgentError)
            return StepDone(self._go.re, error=record(error), shown=is_shown, duration_ms=took_ms), error
        return StepDone(self._go.re, value=Raw(value), duration_ms=took_ms), None

    async def _until_final(self) -> tuple[bytes, BaseException | None]:
        for attempt in itertools.count():
            try:
                return self._encoded(await self._attempt()), None
            except BaseException as exc:
                if isinstance(exc, asyncio.CancelledError) and self._is_cancelled():
                    raise
                if attempt >= self._step.retries or not isinstance(exc, Exception):
                    return b"", exc
            await asyncio.sleep(min(FIRST_RETRY_S * 2**attempt, LONGEST_RETRY_S))
            if self._running.has_shown:
                self._run.send(StepRepeats(self._go.re))
                self._running.has_shown = False
        raise AssertionError("the last attempt returns")

    def _is_cancelled(self) -> bool:
        """Whether the code, or the turn, has cancelled the step; not something inside the step."""
        task = asyncio.current_task()
        return self._run.cancelled is not None or task is None or task.cancelling() > 0

    async def _attempt(self) -> Any:
        step, limit = self._step, asyncio.timeout(self._step.timeout_s)
        try:
            async with limit:
                return await self._call()
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"{step.name} took longer than {step.timeout_s:g} s.") from None
            raise

    async def _call(self) -> Any:
        step = self._step
        fn = self._run.agent.function_of(step.name, step.effect, step.fn)
        call = functools.partial(self._call_with_arguments, fn)
        if inspect.isasyncgenfunction(fn):
            async with aclosing(call()) as pieces:
                return await self._stream(pieces)
        if inspect.iscoroutinefunction(fn):
            return await call()
        threads = self._run.threads.steps
        if inspect.isgeneratorfunction(fn):
            return await self._stream(_in_thread(self._run, await threads.run(self._run, call)))
        returned = await threads.run(self._run, call)
        return await returned if inspect.isawaitable(returned) else returned

    def _call_with_arguments(self, fn: Callable[..., Any]) -> Any:
        step = self._step
        if self._go.arguments is None and not step.is_tool:
            return fn(*step.args, **step.kwargs)
        assert step.tool is not None
        given = self._go.arguments if self._go.arguments is not None else step.arguments
        try:
            return step.tool.call(given or {}, fn)
        except Unstorable as exc:
            raise ValueError(f"The arguments don't fit {step.name}: {exc}.") from exc

    async def _stream(self, pieces: AsyncIterator[object]) -> Any:
        texts: list[str] = []
        result: Result | None = None
        async for piece in pieces:
            match piece:
                case str():
                    texts.append(piece)
                    await self._run.show(text_item(TextItem, piece))
                case Thought(text):
                    await self._run.show(text_item(ThoughtItem, text))
                case Usage():
                    report(self._run, piece, self._step.scope)
                case Result():
                    result = piece
                case _:
                    raise StepResultInvalid(
                        f"{self._step.name} yielded a {class_of(piece)}; it can yield texts, Thought, "
                        "Usage and Result."
                    )
        return result.value if result is not None else "".join(texts)

    def _encoded(self, value: Any) -> bytes:
        step = self._step
        try:
            encoded = encode(value)
        except Unstorable as exc:
            kind = class_of(value)
            raise StepResultInvalid(
                f"{step.name} returned a {kind}, which can't be stored: {exc}. Return plain values, "
                "dataclasses, pydantic or msgspec values."
            ) from exc
        if len(encoded) > MOST_RESULT_BYTES:
            raise StepResultTooLarge(
                f"{step.name} returned {len(encoded)} bytes; the most is {MOST_RESULT_BYTES}. "
                "Use `turn.attach` for files."
            )
        try:
            decode(encoded, step.kind)
        except Unstorable as exc:
            raise StepResultInvalid(f"{step.name} returned something else than it says: {exc}.") from exc
        return encoded


async def _in_thread(run: FunctionRun, iterator: Iterator[object]) -> AsyncIterator[object]:
    """The items of an iterator that may block."""
    end = object()
    while (item := await run.threads.steps.run(run, next, iterator, end)) is not end:
        yield item


def report(run: FunctionRun, usage: Usage, scope: str) -> "asyncio.Future[Any]":
    """Reports a model call of the program's own; nobody has to wait for the answer."""
    run.check_usable()
    step = current_step.get()
    if step is not None:
        run.send(_usage_claim(0, usage, scope, step.id))
        reported: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reported.set_result(None)
        return reported
    return run.watch(run.open("The usage", lambda id_: _usage_claim(id_, usage, scope, None)))


def _usage_claim(id_: int, usage: Usage, scope: str, step: int | None) -> UsageClaim:
    return UsageClaim(
        id=id_,
        model=usage.model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cost=usage.cost,
        scope=scope,
        step=step,
    )
