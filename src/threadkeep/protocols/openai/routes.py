"""`/v1`: what OpenAI's SDKs, and whatever stands on them, call."""

from typing import Any

from threadkeep.domain.key import Scope
from threadkeep.handling.routing import Route
from threadkeep.protocols.openai import (
    completions,
    conversation_items,
    conversations,
    files,
    models,
    responses,
)

PREFIX = "/v1"
_TAG = "OpenAI"


def _route(method: str, path: str, handler: Any, scope: Scope, **more: Any) -> Route:
    return Route(method, f"{PREFIX}/{path}", handler, _TAG, scope=scope, **more)


ROUTES = (
    _route("GET", "models", models.list_models, Scope.READ),
    _route("GET", "models/{model}", models.get_model, Scope.READ),
    _route(
        "POST",
        "chat/completions",
        completions.create_completion,
        Scope.CHAT,
        body_has_files=True,
        stores="nothing",
        begins_turn=True,
    ),
    _route(
        "POST",
        "responses",
        responses.create_response,
        Scope.CHAT,
        body_has_files=True,
        stores="nothing",
        begins_turn=True,
        is_large=True,
    ),
    _route("GET", "responses/{response_id}", responses.get_response, Scope.READ, is_large=True),
    _route("DELETE", "responses/{response_id}", responses.delete_response, Scope.CHAT),
    _route(
        "POST",
        "responses/{response_id}/cancel",
        responses.cancel_response,
        Scope.CHAT,
        stores="nothing",
        is_large=True,
    ),
    _route(
        "GET", "responses/{response_id}/input_items", responses.list_input_items, Scope.READ, is_large=True
    ),
    _route(
        "POST",
        "conversations",
        conversations.create_conversation,
        Scope.CHAT,
        body_has_files=True,
        creates=True,
    ),
    _route("GET", "conversations/{conversation}", conversations.get_conversation, Scope.READ),
    _route(
        "POST", "conversations/{conversation}", conversations.update_conversation, Scope.CHAT, stores="text"
    ),
    _route("DELETE", "conversations/{conversation}", conversations.delete_conversation, Scope.CHAT),
    _route(
        "GET", "conversations/{conversation}/items", conversation_items.list_items, Scope.READ, is_large=True
    ),
    _route(
        "POST",
        "conversations/{conversation}/items",
        conversation_items.add_items,
        Scope.CHAT,
        body_has_files=True,
        creates=True,
        is_large=True,
    ),
    _route("GET", "conversations/{conversation}/items/{item}", conversation_items.get_item, Scope.READ),
    _route("DELETE", "conversations/{conversation}/items/{item}", conversation_items.delete_item, Scope.CHAT),
    _route("POST", "files", files.upload, Scope.CHAT, creates=True),
    _route("GET", "files", files.list_files, Scope.READ),
    _route("GET", "files/{file}", files.get_file, Scope.READ),
    _route("DELETE", "files/{file}", files.delete_file, Scope.CHAT),
    _route("GET", "files/{file}/content", files.content, Scope.READ),
)
