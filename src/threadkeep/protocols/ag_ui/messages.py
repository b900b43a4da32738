"""A reply of ours as AG-UI's messages: their ids and contents, for streams and for the history alike.

| part of a reply | message | its id |
|---|---|---|
| text | assistant | the reply's; of later ones `<reply>-2`, `<reply>-3`, … |
| thought | reasoning | `<reply>-thought`, `<reply>-thought-2`, … |
| tool call | assistant with the call, tool with its result | the call's; `<call>-result` |
| sources | activity `threadkeep.sources` | `<reply>-sources`, `<reply>-sources-2`, … |
| message that steered the turn | user | its own |
| text or thought of a repeated model call | activity `threadkeep.superseded` | the id that it had |
| notice, question, step | none | |

What a tool returned besides its result (a chart, files) and a status other than `ok` are the tool message's
metadata.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from msgspec import UNSET, UnsetType

from threadkeep.domain.events import Retrieval, ReturnedImage
from threadkeep.domain.ids import MessageId
from threadkeep.domain.mcp import CLIENT
from threadkeep.domain.message import Message, MessageRole
from threadkeep.domain.parts import (
    CardPart,
    FilePart,
    NoticePart,
    OutputPart,
    Part,
    QuestionPart,
    RetrievalPart,
    StepPart,
    TextPart,
    ThoughtPart,
    ToolCallPart,
    UserTextPart,
    card_of,
)
from threadkeep.domain.retrieval import Citation, PassageNumbers
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.protocols.ag_ui import frames

SOURCES = "threadkeep.sources"
SUPERSEDED = "threadkeep.superseded"


class MessageIds:
    """The ids of the messages of one reply, in the order in which they appear."""

    def __init__(self, reply_id: MessageId) -> None:
        self._reply_id = reply_id
        self._texts = self._thoughts = self._sources = 0

    def text(self) -> str:
        """The id of the next text."""
        self._texts += 1
        return _numbered(self._reply_id, self._texts)

    def thought(self) -> str:
        """The id of the next thought."""
        self._thoughts += 1
        return _numbered(f"{self._reply_id}-thought", self._thoughts)

    def sources(self) -> str:
        """The id of the next sources."""
        self._sources += 1
        return _numbered(f"{self._reply_id}-sources", self._sources)


def _numbered(id_: str, number: int) -> str:
    return id_ if number == 1 else f"{id_}-{number}"


def result_id(tool_call_id: str) -> str:
    """The id of the message with a call's result."""
    return f"{tool_call_id}-result"


def result_content(result: object, error: str | None) -> str:
    """A call's result as text."""
    if error is not None:
        return error
    return result if isinstance(result, str) else frames.encode_json(result).decode()


def result_metadata(
    status: str,
    chart: object = None,
    images: Iterable[ReturnedImage | FilePart] = (),
    artifact_ids: Sequence[str] = (),
) -> Mapping[str, Any] | UnsetType:
    """What a call's result has besides its content."""
    metadata: dict[str, Any] = {} if status == ToolCallStatus.OK else {"status": status}
    if chart is not None:
        metadata["chart"] = chart
    if shown := [_image(image) for image in images]:
        metadata["images"] = shown
    if artifact_ids:
        metadata["artifactIds"] = list(artifact_ids)
    return metadata or UNSET


def _image(image: ReturnedImage | FilePart) -> dict[str, Any]:
    return {
        "fileId": image.file_id,
        "fileName": image.file_name,
        "mediaType": image.media_type,
        "width": image.width,
        "height": image.height,
    }


def sources_content(found: Retrieval | RetrievalPart, numbers: PassageNumbers) -> dict[str, Any]:
    """Sources under the numbers by which the reply cites them; `numbers` has those of its earlier ones."""
    content: dict[str, Any] = {"query": found.query}
    if found.tool_call_id is not None:
        content["toolCallId"] = found.tool_call_id
    numbered = zip(found.hits, numbers.add(found.hits), strict=True)
    return content | {"sources": [_source(Citation.of(hit, number)) for hit, number in numbered]}


def _source(citation: Citation) -> dict[str, Any]:
    source = {
        "index": citation.index,
        "title": citation.title,
        "snippet": citation.snippet,
        "score": citation.score,
        "url": citation.url,
        "fileName": citation.file_name,
        "documentId": citation.document_id,
        "page": citation.page,
    }
    return {name: value for name, value in source.items() if value is not None}


def superseded_content(text: str) -> dict[str, Any]:
    """A text or thought that no longer counts."""
    return {"text": text}


def messages_of(
    message: Message, known_id: str, files: Sequence[frames.Content] = ()
) -> list[frames.Message]:
    """A stored message: a question under the id by which the client knows it, with its files, or a reply."""
    match message.role:
        case MessageRole.USER:
            text = [frames.TextContent(message.text)] if message.text else []
            return [frames.UserMessage(known_id, [*text, *files] if files else message.text)]
        case MessageRole.ASSISTANT:
            return _Reply(message).messages
        case MessageRole.SYSTEM:
            # AG-UI has no briefing, and clients don't show what the system says.
            card = card_of(message.parts)
            return [frames.AssistantMessage(message.id, card.text if card else message.text)]
        case _ as never:
            assert_never(never)


@dataclass(slots=True)
class _Reply:
    """A reply as a client builds it from its stream."""

    messages: list[frames.Message]
    _ids: MessageIds
    _numbers: PassageNumbers
    _images: Mapping[str, Sequence[FilePart]]

    def __init__(self, reply: Message) -> None:
        self.messages = []
        self._ids = MessageIds(reply.id)
        self._numbers = PassageNumbers()
        images: dict[str, list[FilePart]] = {}
        for part in reply.parts:
            if isinstance(part, FilePart) and part.tool_call_id:
                images.setdefault(part.tool_call_id, []).append(part)
        self._images = images
        for part in reply.parts:
            self._add(part)

    def _add(self, part: Part) -> None:
        match part:
            case TextPart():
                id_ = self._ids.text()
                self.messages.append(
                    _superseded(id_, part.text)
                    if part.superseded
                    else frames.AssistantMessage(id_, part.text)
                )
            case ThoughtPart():
                id_ = self._ids.thought()
                text = part.text if part.title is None else ": ".join(filter(None, (part.title, part.text)))
                self.messages.append(
                    _superseded(id_, text) if part.superseded else frames.ReasoningMessage(id_, text)
                )
            case ToolCallPart():
                self._add_call(part)
            case RetrievalPart():
                content = sources_content(part, self._numbers)
                self.messages.append(frames.ActivityMessage(self._ids.sources(), SOURCES, content))
            case UserTextPart():
                self.messages.append(frames.UserMessage(part.message_id, part.text))
            case NoticePart() | QuestionPart() | StepPart() | FilePart() | CardPart() | OutputPart():
                return
            case _ as never:
                assert_never(never)

    def _add_call(self, part: ToolCallPart) -> None:
        call = part.call
        if _waits_to_be_allowed(part):
            return
        arguments = frames.encode_json(_arguments(part)).decode()
        function = frames.Function(call.tool_name, arguments)
        self.messages.append(
            frames.AssistantMessage(call.sent_id, tool_calls=[frames.ToolCall(call.sent_id, function)])
        )
        if call.status is not ToolCallStatus.RUNNING:
            images = self._images.get(call.tool_call_id, ())
            metadata = result_metadata(call.status.value, call.chart_data, images, call.artifact_ids)
            content = result_content(call.result, call.error)
            self.messages.append(frames.ToolMessage(result_id(call.sent_id), call.sent_id, content, metadata))


def _waits_to_be_allowed(part: ToolCallPart) -> bool:
    """Whether the client would run a call that the user hasn't allowed."""
    is_asking = part.approval is not None and part.client_request is None
    return part.call.server == CLIENT and is_asking and part.call.status is ToolCallStatus.RUNNING


def _arguments(part: ToolCallPart) -> Mapping[str, Any]:
    """The arguments with which the client runs a call, or our server did."""
    decision = part.approval.decision if part.approval and part.call.server == CLIENT else None
    return part.call.arguments if decision is None or decision.arguments is None else decision.arguments


def _superseded(id_: str, text: str) -> frames.ActivityMessage:
    return frames.ActivityMessage(id_, SUPERSEDED, superseded_content(text))
