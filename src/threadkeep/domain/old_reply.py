"""Converts a version 1 reply, with its steps, citations, tool calls and files beside its text, to parts.

Databases and exports of that version contain such replies. Only the order of the steps is known, so the text,
which was one string, comes last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from threadkeep.domain.parts import (
    FilePart,
    NoticePart,
    Part,
    Parts,
    RetrievalPart,
    TextPart,
    ThoughtPart,
    ThoughtStep,
    ToolCallPart,
)
from threadkeep.domain.retrieval import Citation, RetrievalHit
from threadkeep.domain.tool_call import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class OldReply:
    """A reply as version 1 stored it."""

    content: str
    created_at: int
    steps: tuple[ThoughtStep, ...] = ()
    citations: tuple[Citation, ...] = ()
    files: tuple[FilePart, ...] = ()
    calls: tuple[ToolCall, ...] = ()

    def parts(self) -> Parts:
        """The reply in parts."""
        return tuple(_Rebuilding(self).parts())


class _Rebuilding:
    def __init__(self, old: OldReply) -> None:
        self._old = old
        self._calls = {call.tool_call_id: call for call in old.calls}
        searches = [step.detail for step in old.steps if step.kind == "retrieval"]
        self._shares = _shares(searches, old.citations)
        self._model_calls = _ModelCalls()

    def parts(self) -> Iterator[Part]:
        for step in self._old.steps:
            yield self._part(step)
        # Another product's calls had no steps.
        for call in self._calls.values():
            yield ToolCallPart(call=call, iteration=self._model_calls.of_tool(call.created_at, 0))
        if hits := next(self._shares, ()):
            yield RetrievalPart(
                query="", hits=hits, at=self._old.created_at, iteration=self._model_calls.current
            )
        for file in self._old.files:
            yield replace(file, iteration=self._model_calls.current)
        if self._old.content:
            yield TextPart(text=self._old.content, iteration=self._model_calls.last)

    def _part(self, step: ThoughtStep) -> Part:
        calls = self._model_calls
        if step.kind == "retrieval" and (hits := next(self._shares, ())):
            return RetrievalPart(
                query=step.title,
                hits=hits,
                at=step.started_at,
                tool_call_id=step.tool_call_id,
                iteration=calls.current,
            )
        if step.kind == "notice":
            return NoticePart(
                code=step.title, message=step.detail, at=step.started_at, iteration=calls.current
            )
        if step.kind == "tool" and (call := self._calls.pop(step.tool_call_id or "", None)) is not None:
            return ToolCallPart(call=call, iteration=calls.of_tool(step.started_at, step.duration_ms))
        is_own = step.kind == "thought"
        return ThoughtPart(
            text=step.detail,
            title=None if is_own else step.title,
            started_at=step.started_at,
            duration_ms=step.duration_ms,
            iteration=calls.of_thought() if is_own else calls.of_node(),
        )


class _ModelCalls:
    """Which model call a step belongs to: the next one begins when all tools of this one have ended."""

    def __init__(self) -> None:
        self.current = 0
        self._tools_ended_at: int | None = None
        self._has_nodes = False

    @property
    def last(self) -> int:
        """The call that wrote the text."""
        is_next = self._tools_ended_at is not None or self._has_nodes
        return self.current + 1 if is_next else max(self.current, 1)

    def of_thought(self) -> int:
        """A thought comes before the tools of its call."""
        return self._next() if self.current == 0 or self._tools_ended_at is not None else self.current

    def of_node(self) -> int:
        """A step of another engine corresponds to a model call here."""
        self._has_nodes = True
        return self._next()

    def of_tool(self, started_at: int, duration_ms: int) -> int:
        """Tools that ran at the same time belong to one model call."""
        ended_at = self._tools_ended_at
        if self.current == 0 or (ended_at is not None and started_at > ended_at):
            self._next()
        self._tools_ended_at = max(self._tools_ended_at or 0, started_at + duration_ms)
        return self.current

    def _next(self) -> int:
        self.current += 1
        self._tools_ended_at = None
        return self.current


def _shares(searches: Sequence[str], citations: Sequence[Citation]) -> Iterator[tuple[RetrievalHit, ...]]:
    """The hits of each search, in order, then the rest: a step names the sources that it found."""
    titles = [citation.title for citation in citations]
    hits = [_hit(citation) for citation in citations]
    begin = 0
    for end in _ends(searches, titles) or [len(hits)]:
        yield tuple(hits[begin:end])
        begin = end
    yield tuple(hits[begin:])


def _ends(searches: Sequence[str], titles: Sequence[str]) -> tuple[int, ...] | None:
    """Where each search's hits end so that it has the sources that its step names; None if impossible."""

    @cache
    def ends(search: int, begin: int) -> tuple[int, ...] | None:
        if search == len(searches):
            return () if begin == len(titles) else None
        for end in range(begin + 1, len(titles) + 1):
            if ", ".join(dict.fromkeys(titles[begin:end])) == searches[search]:
                following = ends(search + 1, end)
                if following is not None:
                    return (end, *following)
        return None

    return ends(0, 0)


def _hit(citation: Citation) -> RetrievalHit:
    return RetrievalHit(
        source=citation.title,
        text=citation.snippet,
        score=citation.score,
        document_id=citation.document_id,
        page=citation.page,
        url=citation.url,
        file_name=citation.file_name,
    )
