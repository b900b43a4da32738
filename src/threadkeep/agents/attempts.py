"""Runs the functions of steps, if the server says so, and gives the code what is recorded of them."""

import asyncio
import functools
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from msgspec import Raw

from threadkeep.agents.agent import ChooseFunction
from threadkeep.agents.errors import AgentError, StepResultInvalid, StepResultTooLarge
from threadkeep.agents.failures import record
from threadkeep.agents.output import text_item
from threadkeep.agents.replies import Result, Shown, Thought, Usage
from threadkeep.agents.run import FunctionRun, RunningStep, checked, current_step
from threadkeep.agents.steps import OpenSteps, Step
from threadkeep.agents.values import (
    MOST_RESULT_BYTES,
    Unstorable,
    class_of,
    decode,
    encode,
    with_article,
)
from threadkeep.wire.programs import (
    NOTHING,
    HitsItem,
    RemoteCallItem,
    RemoteResultItem,
    RemoteStepItem,
    Run,
    StepDone,
    StepRepeats,
    TextItem,
    ThoughtItem,
    UsageClaim,
)

FIRST_RETRY_S = 0.5
LONGEST_RETRY_S = 20.0


async def take(run: FunctionRun, open_steps: OpenSteps, step: Step) -> Any:
    """Claims a step, runs it if the server says so, and returns what is recorded of it."""
    await run.check()
    run.check_outside_step(f"The step `{step.name}`")
    open_steps.add(step)
    try:
        async with run.place():
            return _read(step, await _taken(run, step, open_steps.function_of))
    finally:
        open_steps.remove(step)


async def _taken(run: FunctionRun, step: Step, function_of: ChooseFunction) -> Raw:
    id_ = run.open(step.name, step.claim)
    cause: BaseException | None = None
    try:
        answer = await run.answer(id_)
        if isinstance(answer, Run):
            done, cause = await _Attempts(run, step, answer, function_of).done()
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
            f"What is recorded of `{step.name}` isn't what it says it returns", str(exc)
        ) from exc


class _Attempts:
    """The function of one step, run now, until it returns or may not be repeated."""

    def __init__(self, run: FunctionRun, step: Step, go: Run, function_of: ChooseFunction) -> None:
        self._run = run
        self._function_of = function_of
        self._step = step
        self._go = go
        self._running = RunningStep(run, go.re, step.name, go.idempotency_key)
        self._shows = NOTHING

    async def done(self) -> tuple[StepDone, BaseException | None]:
        """How it ended, and the exception if it failed."""
        token = current_step.set(self._running)
        now = asyncio.get_running_loop().time
        began = now()
        try:
            value, error = await self._until_final()
        except BaseException:
            self._run.send(StepDone(self._go.re))
            raise
        finally:
            self._running.is_over = True
            current_step.reset(token)
        took_ms = round((now() - began) * 1000)
        if error is not None:
            is_shown = isinstance(error, AgentError)
            return StepDone(self._go.re, error=record(error), shown=is_shown, duration_ms=took_ms), error
        return StepDone(self._go.re, value=Raw(value), shows=self._shows, duration_ms=took_ms), None

    async def _until_final(self) -> tuple[bytes, BaseException | None]:
        for attempt in itertools.count():
            try:
                return self._encoded(await self._attempt()), None
            except BaseException as exc:
                if isinstance(exc, asyncio.CancelledError) and self._is_cancelled():
                    raise
                if attempt >= self._step.retries or not isinstance(exc, self._step.retries_for):
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
        fn = self._function_of(step.name, step.effect, step.fn)
        call = functools.partial(self._call_with_arguments, fn)
        if inspect.iscoroutinefunction(fn):
            return await call()
        if inspect.isasyncgenfunction(fn):
            async with aclosing(call()) as pieces:
                return await self._stream(pieces)
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
                case RemoteCallItem() | RemoteResultItem() | RemoteStepItem() | HitsItem():
                    await self._run.show(piece)
                case _:
                    raise StepResultInvalid(
                        f"{self._step.name} yielded {with_article(class_of(piece))}; it can yield texts, "
                        "Thought, Usage and Result."
                    )
        return result.value if result is not None else "".join(texts)

    def _encoded(self, value: Any) -> bytes:
        step = self._step
        if isinstance(value, Shown):
            self._shows, value = Raw(encode(value.shows)), value.value
        try:
            encoded = encode(value)
        except Unstorable as exc:
            kind = class_of(value)
            raise StepResultInvalid(
                f"{step.name} returned {with_article(kind)}, which can't be stored",
                str(exc),
                "Return plain values, dataclasses, pydantic or msgspec values.",
            ) from exc
        if len(encoded) > MOST_RESULT_BYTES:
            raise StepResultTooLarge(
                f"{step.name} returned {len(encoded)} bytes; the most is {MOST_RESULT_BYTES}. "
                "Use `turn.attach` for files."
            )
        try:
            decode(encoded, step.kind)
        except Unstorable as exc:
            raise StepResultInvalid(f"{step.name} returned something else than it says", str(exc)) from exc
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
        run.send(checked("turn.usage", _usage_claim(0, usage, scope, step.id)))
        reported: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reported.set_result(None)
        return reported
    return run.watch(run.open("turn.usage", lambda id_: _usage_claim(id_, usage, scope, None)))


def _usage_claim(id_: int, usage: Usage, scope: str, step: int | None) -> UsageClaim:
    return UsageClaim(
        id=id_,
        model=usage.model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cost=None if usage.cost is None else str(usage.cost),
        scope=scope,
        step=step,
    )
