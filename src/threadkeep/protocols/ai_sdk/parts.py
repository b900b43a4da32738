"""The parts of a message that streams send as they are: `encode.py` and `history.py` make them alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from msgspec import UNSET

from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.document import CSV, DOCX, HTML, MARKDOWN, PDF, TEXT
from threadkeep.domain.events import ApprovalRequest, StepChanged
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import QuestionPart, StepPart
from threadkeep.domain.retrieval import Citation, PassageNumbers, RetrievalHit
from threadkeep.protocols.ai_sdk import frames
from threadkeep.protocols.ai_sdk.frames import Data, Metadata, SharedPart, Version

_MEDIA_TYPES = {
    ".pdf": PDF, ".docx": DOCX, ".html": HTML, ".htm": HTML, ".md": MARKDOWN, ".csv": CSV,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: a version of the AI SDK, and the address under which it reaches us."""

    version: Version
    base_url: str

    def file(self, file_id: str, media_type: str, name: str = "", *, is_image: bool) -> frames.File:
        """A file, and where the client finds it; an image as it may be shown."""
        url = f"{self.base_url}/api/files/{file_id}{'?preview=true' if is_image else ''}"
        return frames.File(media_type=media_type, filename=name or UNSET, url=url)

    def steering(self, message_id: str, text: str) -> SharedPart:
        """A message that the user sent while the turn ran."""
        if self.version == 7:
            return frames.SteeringMessage(id=message_id, parts=[frames.Text(text=text)])
        return Data(type="data-user-message", id=message_id, data={"text": text})


class Sources:
    """What a turn's searches found, under the numbers by which the answer cites it."""

    def __init__(self, hits: Sequence[RetrievalHit] = ()) -> None:
        self._hits = list(hits)
        self._numbers = PassageNumbers(hits)
        self._before_iteration = len(hits)

    def begin_iteration(self) -> None:
        """Another model call begins."""
        self._before_iteration = len(self._hits)

    def restarted(self) -> "Sources":
        """The model call is repeated: what it found no longer counts."""
        return Sources(self._hits[: self._before_iteration])

    def found(self, query: str, hits: Sequence[RetrievalHit]) -> list[SharedPart]:
        """A search: the sources that it is the first to find, and its passages."""
        places = range(len(self._hits) + 1, len(self._hits) + len(hits) + 1)
        self._hits += hits
        numbered = list(zip(self._numbers.add(hits), hits, strict=True))
        new = [it for it, place in zip(numbered, places, strict=True) if it[0] == place]
        passages = [_passage(number, hit) for number, hit in numbered]
        return [
            *(_source(Citation.of(hit, number)) for number, hit in new),
            Data(type="data-retrieval", data={"query": query, "passages": passages}),
        ]


def _source(citation: Citation) -> frames.SourceUrl | frames.SourceDocument:
    id_ = str(citation.index)
    if citation.url:
        return frames.SourceUrl(source_id=id_, url=citation.url, title=citation.title)
    name = citation.file_name or ""
    return frames.SourceDocument(
        source_id=id_,
        media_type=_MEDIA_TYPES.get(PurePath(name).suffix.lower(), TEXT),
        title=citation.title,
        filename=name or UNSET,
    )


def _passage(number: int, hit: RetrievalHit) -> Mapping[str, Any]:
    page = {} if hit.page is None else {"page": hit.page}
    return {"sourceId": str(number), "title": hit.source, **page, "text": hit.text, "score": hit.score}


def notice(code: str, message: str) -> Data:
    """Something degraded, but the turn continues."""
    return Data(type="data-notice", data={"code": code, "message": message})


def step(known: StepChanged | StepPart) -> Data:
    """A step of an agent in code; its end has the same id, and replaces its begin in the client's message."""
    data: dict[str, Any] = {"stepId": known.step_id, "name": known.name, "status": known.status}
    optional = {
        "title": known.title,
        "durationMs": known.duration_ms,
        "parentId": known.parent_id,
        "agent": known.agent,
    }
    data |= {name: value for name, value in optional.items() if value is not None}
    return Data(type="data-step", id=known.step_id, data=data)


def output(value: Any) -> Data:
    """The reply as a value."""
    return Data(type="data-output", data=value)


def chart(tool_call_id: str, chart_data: Any) -> Data:
    """What a tool's result is drawn from."""
    return Data(type="data-chart", id=tool_call_id, data={"toolCallId": tool_call_id, "chart": chart_data})


def failure(code: str, message: str, *, retryable: bool) -> Data:
    """Why the turn failed, so that it is still known after a reload."""
    return Data(type="data-error", data={"code": code, "message": message, "retryable": retryable})


def question(asked: ApprovalRequest | QuestionPart, decision: Decision | None = None) -> Data:
    """What the turn asks its user, and the answer. Our own route takes it; the protocol has none."""
    data: dict[str, Any] = {"requestId": asked.request_id, "message": asked.message}
    optional = {"toolCallId": asked.tool_call_id, "schema": asked.schema, "url": asked.url}
    data |= {name: value for name, value in optional.items() if value is not None}
    data["expiresAt"] = asked.expires_at
    if decision is not None:
        content = {} if decision.content is None else {"content": decision.content}
        data["answer"] = {"action": decision.action.value, **content}
    return Data(type="data-question", id=asked.request_id, data=data)


def is_approval(action: ApprovalAction) -> bool:
    """Whether the user lets the call run."""
    return action in (ApprovalAction.ALLOW, ApprovalAction.EDIT)


def call_metadata(server: str) -> Metadata:
    """Whose tool was called: names are unique only within a server."""
    return {"threadkeep": {"server": server}}


def started(turn_id: str | None) -> Metadata:
    """What is known about an answer when it begins."""
    return {"turnId": turn_id} if turn_id else {}


def completed(model: str | None, usage: Usage | None) -> Metadata:
    """What is known about an answer when it is complete."""
    named = {"model": model} if model else {}
    if usage is None:
        return named
    tokens = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
    return {**named, "usage": {**tokens, "totalTokens": usage.input_tokens + usage.output_tokens}}


def error_text(error: str | None, status: str) -> str:
    """Why a call has no result."""
    return error or f"The call ended with the status `{status}`."
