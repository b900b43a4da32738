"""Messages of pydantic-ai: what identifies a request, and what is kept for the next turn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic_ai.durable_exec import ModelRequestParams
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from threadkeep.agents.media import Media
from threadkeep.wire.programs import ModelMessageItem

_IDENTIFYING = ("part_kind", "content", "args", "tool_name", "tool_call_id")


def content_of(params: ModelRequestParams) -> list[Any]:
    """What a model is asked, without what may differ when the function runs again.

    Those are times and ids, and the instructions, in which many agents write the date.
    """
    tools = params.model_request_parameters.function_tools
    return [[_content(it) for it in params.messages], sorted(it.name for it in tools)]


def _content(message: ModelMessage) -> list[Any]:
    (dumped,) = dump([message])
    return [
        {name: part[name] for name in _IDENTIFYING if name in part}
        for part, original in zip(dumped["parts"], message.parts, strict=True)
        if not isinstance(original, SystemPromptPart)
    ]


def dump(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Messages as JSON values."""
    return cast("list[dict[str, Any]]", ModelMessagesTypeAdapter.dump_python([*messages], mode="json"))


def load(dumped: object) -> list[ModelMessage]:
    """Messages from their JSON values."""
    return ModelMessagesTypeAdapter.validate_python(dumped)


def converted(context: Iterable[ModelMessageItem], media: Media) -> list[ModelMessage]:
    """Messages as the server has them: those of other agents, and what was imported."""
    names: dict[str, str] = {}
    return [it for item in context for it in _converted(item, names, media)]


def prompt_of(request: ModelRequest) -> str | list[UserContent]:
    """What a user asks: a text, or texts and files."""
    contents: list[UserContent] = []
    for part in request.parts:
        if isinstance(part, UserPromptPart):
            contents += [part.content] if isinstance(part.content, str) else part.content
    texts = [it for it in contents if isinstance(it, str)]
    return "\n\n".join(texts) if len(texts) == len(contents) else contents


def _converted(item: ModelMessageItem, names: dict[str, str], media: Media) -> Iterable[ModelMessage]:
    blocks = [{"type": "text", "text": item.content}] if isinstance(item.content, str) else item.content
    parts = [it for it in (_part(item.role, block, names, media) for block in blocks) if it is not None]
    if parts and item.role == "user":
        yield ModelRequest(parts=cast("Any", parts))
    elif parts:
        yield ModelResponse(parts=cast("Any", parts))


def _part(role: str, block: Mapping[str, Any], names: dict[str, str], media: Media) -> object:
    match block:
        case {"type": "image" | "document"} if role == "user":
            file = media.of(block)
            content = (
                file if isinstance(file, str) else BinaryContent(file.content, media_type=file.media_type)
            )
            return UserPromptPart(content=[content])
        case {"type": "text", "text": str(text)} if text:
            return UserPromptPart(content=text) if role == "user" else TextPart(content=text)
        case {"type": "tool_use", "id": id_, "name": name, "input": arguments}:
            names[id_] = name
            return ToolCallPart(tool_name=name, args=arguments, tool_call_id=id_)
        case {"type": "tool_result", "tool_use_id": id_} if id_ in names:
            content = block.get("content", "")
            return ToolReturnPart(tool_name=names[id_], content=content, tool_call_id=id_)
        case _:
            return None
