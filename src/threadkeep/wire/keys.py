"""API keys as clients see them."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.domain.key import Key, Scope
from threadkeep.domain.money import amount_text
from threadkeep.wire.view import CreatedAt, Id, OwnId, Time, View, rfc3339, time_or_none


class ActAsView(View, frozen=True, kw_only=True):
    """The users that a key acts for."""

    realm: Annotated[str, Meta(description="What the ids of its users begin with; empty for every user.")]


class KeyView(View, frozen=True, kw_only=True):
    """An API key without its value."""

    id: OwnId
    name: Annotated[str, Meta(description="What its owner recognizes it by.")]
    prefix: Annotated[str, Meta(description="How the key begins, to tell keys apart.")]
    scopes: Annotated[Sequence[Scope], Meta(description="What it may do: read, chat, administer.")]
    agents: Annotated[
        Sequence[Id] | None, Meta(description="The agents that it is limited to; null for all.")
    ]
    budget_month: Annotated[
        str | None, Meta(description="What it can spend in a calendar month; null for no limit.")
    ]
    parent_id: Annotated[
        Id | None,
        Meta(
            description="The key that made it: it is revoked with it, and shares its budget. Null: you did."
        ),
    ]
    act_as: Annotated[
        ActAsView | None, Meta(description="The application's users that it acts for; null for your own key.")
    ]
    may_delete: Annotated[bool, Meta(description="Whether it can delete the users that it acts for.")]
    created_at: CreatedAt
    expires_at: Annotated[Time | None, Meta(description="When it stops working; null means never.")]
    last_used_at: Annotated[Time | None, Meta(description="When it was last used, accurate to a minute.")]


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A new API key with its value. It is shown this once: Threadkeep stores only its hash."""

    key: Annotated[str, Meta(description="The key itself, for `Authorization: Bearer`; shown only now.")]


def key_view(key: Key) -> KeyView:
    """A key as its user sees it."""
    return KeyView(
        id=key.id,
        name=key.name,
        prefix=key.prefix,
        scopes=key.scopes,
        agents=None if key.agents is None else sorted(key.agents),
        budget_month=None if key.budget_month is None else amount_text(key.budget_month),
        parent_id=key.parent_id,
        act_as=None if key.act_as is None else ActAsView(realm=key.act_as),
        may_delete=key.may_delete,
        created_at=rfc3339(key.created_at),
        expires_at=time_or_none(key.expires_at),
        last_used_at=time_or_none(key.last_used_at),
    )
