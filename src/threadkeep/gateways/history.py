"""The history as one provider and model accept it."""

from collections.abc import Iterable

from threadkeep.domain.text import is_blank
from threadkeep.ports.gateway import Block, ModelMessage, TextBlock, ThinkingBlock


def sendable(messages: Iterable[ModelMessage], signed_by: str | None) -> list[ModelMessage]:
    """Messages without empty texts and without reasoning that another model signed.

    If nothing of a message is left, its neighbours are merged: roles still alternate.
    """
    kept: list[ModelMessage] = []
    for message in messages:
        blocks = [block for block in message.blocks if _is_sendable(block, signed_by)]
        if kept and kept[-1].role == message.role:
            kept[-1] = ModelMessage(message.role, (*kept[-1].blocks, *blocks))
        elif blocks:
            is_whole = len(blocks) == len(message.blocks)
            kept.append(message if is_whole else ModelMessage(message.role, tuple(blocks)))
    return kept


def _is_sendable(block: Block, signed_by: str | None) -> bool:
    if isinstance(block, TextBlock):
        return not is_blank(block.text)
    return not isinstance(block, ThinkingBlock) or (block.signed_by == signed_by and bool(block.signature))
