"""Model calls of the SDK as recorded steps, whose text is shown while it is written."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from agents import Model, ModelProvider, ModelResponse
from agents import Usage as SdkUsage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputItem,
    ResponseUsage,
)
from pydantic import TypeAdapter

from threadkeep.agents.errors import ModelFailed
from threadkeep.agents.model_errors import broke_off, model_failed
from threadkeep.agents.openai_agents.current import Running, recording, step_name
from threadkeep.agents.replies import Result, Thought, Usage
from threadkeep.agents.turn import Turn
from threadkeep.agents.values import plain

log = logging.getLogger("threadkeep.agents")

_THOUGHTS = frozenset(("response.reasoning_summary_text.delta", "response.reasoning_text.delta"))
_TEXTS = frozenset(("response.output_text.delta", "response.refusal.delta"))
_BROKEN = frozenset(("response.incomplete", "response.failed"))
_ERRORS = frozenset(("error", "response.error"))

_items: TypeAdapter[list[Any]] = TypeAdapter(list[ResponseOutputItem])


class RecordedProvider(ModelProvider):
    """Gives the models of another provider, recorded."""

    def __init__(self, inner: ModelProvider) -> None:
        self._inner = inner

    def get_model(self, model_name: str | None) -> Model:
        """What the other provider gives, recorded."""
        model = self._inner.get_model(model_name)
        record_model(model, model_name)
        return model

    async def aclose(self) -> None:
        """Does nothing: the other provider serves more than one run."""


def record_model(model: Model, name: str | None = None) -> None:
    """From now on, the calls of a model inside a turn are steps. It stays the same object."""
    if getattr(model, "_threadkeep_recorded", False):
        return
    changed = cast("Any", model)
    recorded = _RecordedModel(model, name or str(getattr(model, "model", "") or ""))
    changed.get_response = recorded.get_response
    changed.stream_response = recorded.stream_response
    changed._threadkeep_recorded = True


class _RecordedModel:
    """The two methods of a model that are replaced."""

    def __init__(self, model: Model, name: str) -> None:
        self._get = model.get_response
        self._stream = model.stream_response
        self._name = name

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        now = recording()
        if now is None:
            return await self._get(*args, **kwargs)
        turn, run = now
        return _response(await self._step(turn, run, args, kwargs))

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        now = recording()
        if now is None:
            async for event in self._stream(*args, **kwargs):
                yield event
            return
        turn, run = now
        kept = await self._step(turn, run, args, kwargs)
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=0, response=_as_streamed(kept, self._name)
        )

    async def _step(self, turn: Turn, run: Running, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        asked = _Asked(*args, **kwargs)
        is_shown = not run.is_nested and (asked.output_schema is None or asked.output_schema.is_plain_text())

        async def ask() -> AsyncIterator[Any]:
            async with aclosing(self._pieces(args, kwargs)) as pieces:
                async for piece in pieces:
                    if is_shown or not isinstance(piece, str | Thought):
                        yield piece

        kept: Any = await turn.step(ask, name=step_name(run.agent), key=asked.content, effect="idempotent")
        run.replies += 1
        run.said = _text(kept["output"]) if is_shown else ""
        return kept

    async def _pieces(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any]:
        """What a call shows, then what is kept of it."""
        done: Response | None = None
        items: list[Any] = []
        has_begun = False
        try:
            async for streamed in self._stream(*args, **kwargs):
                event, has_begun = cast("Any", streamed), True
                kind: str = event.type
                if kind in _TEXTS:
                    yield event.delta
                elif kind in _THOUGHTS:
                    yield Thought(event.delta)
                elif kind == "response.output_item.done":
                    items.append(event.item)
                elif kind == "response.completed":
                    done = event.response
                elif kind in _BROKEN:
                    raise _broken(event.response)
                elif kind in _ERRORS:
                    raise broke_off(event.message)
        except NotImplementedError:
            if has_begun:
                raise
            async for piece in self._at_once(args, kwargs):
                yield piece
            return
        except Exception as exc:
            if (failed := model_failed(exc)) is None or failed is exc:
                raise
            log.error("the model %s failed: %s", self._name, _told(exc))
            raise failed from exc
        if done is None:
            raise broke_off()
        if not done.output:
            done.output = items
        if done.usage is not None:
            yield _reported(done.model or self._name, done.usage)
        yield Result(
            {
                "id": done.id,
                "request": getattr(done, "_request_id", None),
                "model": done.model,
                "output": _kept(done.output),
                "usage": None if done.usage is None else done.usage.model_dump(mode="json"),
            }
        )

    async def _at_once(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncIterator[Any]:
        """The same for a model that can't stream."""
        reply = await self._get(*args, **kwargs)
        kept = _kept(cast("list[Any]", reply.output))
        if text := _text(kept):
            yield text
        used = reply.usage
        yield Usage(
            self._name or "unknown",
            used.input_tokens,
            used.output_tokens,
            used.input_tokens_details.cached_tokens or 0,
        )
        yield Result(
            {
                "id": reply.response_id,
                "request": reply.request_id,
                "model": self._name,
                "output": kept,
                "usage": {
                    "input_tokens": used.input_tokens,
                    "input_tokens_details": used.input_tokens_details.model_dump(mode="json"),
                    "output_tokens": used.output_tokens,
                    "output_tokens_details": used.output_tokens_details.model_dump(mode="json"),
                    "total_tokens": used.total_tokens,
                },
            }
        )


class _Asked:
    """What a model is asked, as `Model.get_response` is given it."""

    def __init__(
        self,
        system_instructions: str | None,  # in which many agents write the date
        input: Any,  # noqa: A002 - the SDK's name
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **_: Any,
    ) -> None:
        self.output_schema = output_schema
        self.content = [
            plain(input),
            sorted(it.name for it in tools),
            sorted(it.tool_name for it in handoffs),
        ]


def _kept(items: list[Any]) -> list[Any]:
    return [it.model_dump(mode="json", exclude_unset=True) for it in items]


def _text(items: list[Any]) -> str:
    """What a reply says."""
    return "".join(
        part.get("text") or part.get("refusal") or ""
        for it in items
        if it.get("type") == "message"
        for part in it["content"]
    )


def _response(kept: Any) -> ModelResponse:
    used = SdkUsage(requests=1)
    if kept["usage"] is not None:
        usage = ResponseUsage.model_validate(kept["usage"])
        used = SdkUsage(
            requests=1,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            input_tokens_details=usage.input_tokens_details,
            output_tokens_details=usage.output_tokens_details,
        )
    return ModelResponse(
        output=_items.validate_python(kept["output"]),
        usage=used,
        response_id=kept["id"],
        request_id=kept["request"],
    )


def _as_streamed(kept: Any, name: str) -> Response:
    return Response(
        id=kept["id"] or "",
        created_at=0,
        model=kept["model"] or name,
        object="response",
        output=_items.validate_python(kept["output"]),
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        usage=None if kept["usage"] is None else ResponseUsage.model_validate(kept["usage"]),
    )


def _reported(model: str, usage: ResponseUsage) -> Usage:
    details = usage.input_tokens_details
    cached = getattr(details, "cached_tokens", 0) or 0
    return Usage(model or "unknown", usage.input_tokens, usage.output_tokens, cached)


def _broken(response: Response | None) -> ModelFailed:
    if response is not None and response.incomplete_details is not None:
        return broke_off(response.incomplete_details.reason)
    if response is not None and response.error is not None:
        return broke_off(response.error.message)
    return broke_off()


def _told(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    return f"{type(error).__name__}, status {status}" if status else type(error).__name__
