"""What a program receives of its turn and of the conversation."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from threadkeep.domain.agent import Code
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.message import Message
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.engine.code.replay import CodeState
from threadkeep.ports.gateway import ModelMessage
from threadkeep.wire.messages import message_view
from threadkeep.wire.programs import (
    NOTHING,
    ProgramTool,
    Start,
    StartConversation,
    StartFile,
    StartMessage,
    StartUser,
)


def start_of(
    turn: Turn,
    conversation: Conversation,
    user: User,
    message: Message | None,
    code: Code,
    state: CodeState,
    *,
    run: int,
    attempt: int,
    kept: bytes | None,
    saved: Mapping[str, bytes],
    is_check: bool = False,
) -> Start:
    """The start of a run: everything that doesn't change while the turn lives."""
    begun_with, begun = turn.begun_with, state.code
    return Start(
        turn=turn.id,
        run=run,
        agent=code.key,
        version=begun.version if begun else code.version,
        user=(begun and begun.user) or StartUser(user.id, user.role.value, user.name, user.groups),
        conversation=(begun and begun.conversation)
        or StartConversation(conversation.id, conversation.title or "", dict(conversation.metadata)),
        message=StartMessage(
            turn.user_message_id,
            message.text if message else "",
            tuple(
                StartFile(it.file_id, it.file_name, it.media_type, it.size)
                for it in (message.files if message else ())
            ),
        ),
        at=turn.started_at,
        attempt=attempt,
        is_resumed=begun is not None,
        model=turn.model,
        client_tools=tuple(
            ProgramTool(it.name, it.description, dict(it.parameters))
            for it in (begun_with.tools if begun_with else ())
        ),
        state=NOTHING if kept is None else Raw(kept),
        saved={scope: Raw(value) for scope, value in saved.items()},
        is_check=is_check,
    )


def as_clients_have(messages: Iterable[Message]) -> list[Mapping[str, Any]]:
    """Messages as the API shows them."""
    return [msgspec.to_builtins(message_view(it)) for it in messages]


def as_models_receive(messages: Iterable[ModelMessage]) -> list[Mapping[str, Any]]:
    """Messages as blocks, which a program can pass on to a model."""
    return [
        {"role": it.role, "content": [msgspec.to_builtins(block) for block in it.blocks]} for it in messages
    ]
