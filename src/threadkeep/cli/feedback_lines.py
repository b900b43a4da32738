"""Exported feedback as JSON lines, with the API's names."""

from typing import Any

import msgspec

from threadkeep.exports.feedback import ExportedFeedback
from threadkeep.ports.gateway import ModelRequest
from threadkeep.wire.messages import cost_view, usage_view
from threadkeep.wire.view import rfc3339

_encode = msgspec.json.Encoder().encode


def feedback_line(line: ExportedFeedback) -> bytes:
    """One rating; texts only if the user may read them."""
    rated, feedback = line.rated, line.rated.feedback
    is_readable = rated.reply is not None
    values: dict[str, Any] = {
        "agentId": rated.agent_id,
        "agent": line.agent_name,
        "messageId": feedback.message_id,
        "rating": feedback.rating,
        "note": feedback.note,
        "shareText": feedback.share_text,
        "own": line.is_own,
        "model": rated.model,
        "usage": usage_view(rated.usage) if rated.usage else None,
        "cost": cost_view(rated.usage.cost if rated.usage else None),
        "answeredAt": rfc3339(rated.replied_at),
        "ratedAt": rfc3339(feedback.updated_at),
    }
    if is_readable:
        values |= {"turnId": rated.turn_id, "question": rated.question, "answer": rated.reply}
    if line.request is not None:
        values["request"] = _request(line.request)
    return _encode(values) + b"\n"


def _request(request: ModelRequest) -> dict[str, Any]:
    """What the model received; files by their names."""
    return {
        "model": request.model,
        "system": request.system,
        "messages": request.messages,
        "tools": [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
            for tool in request.tools
        ],
        "temperature": request.temperature,
        "maxTokens": request.max_tokens,
    }
