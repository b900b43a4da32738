"""API keys over HTTP."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from threadkeep.domain.errors import AgentNotFound
from threadkeep.domain.ids import AgentId, is_uuid
from threadkeep.domain.key import KeyDraft, Scope
from threadkeep.domain.money import parse_amount
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.keys import KeyView, NewKeyView, key_view
from threadkeep.wire.view import PageView


class ActAsBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The users that a key acts for."""

    realm: Annotated[
        str,
        Meta(
            description="What the ids of these users begin with: with the realm `shop`, the header "
            "`Threadkeep-User: 42` is the user `shop:42`. At most 32 characters a-z, 0-9, `-`; empty "
            "for every user of the server, where the operator allows it."
        ),
    ]


class KeyBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The key to make."""

    name: Annotated[str, Meta(description="What you recognize it by, at most 100 characters.")]
    scopes: Annotated[
        list[Scope],
        Meta(
            min_length=1,
            description="`read`: GET requests; `chat`: also conversations, messages, files, approvals and "
            "feedback; `admin`: everything that you may do.",
        ),
    ]
    agents: Annotated[
        list[str] | None, Meta(description="The agents that it is limited to; by default, all.")
    ] = None
    budget_month: Annotated[
        str | int | float | None,
        Meta(description="What it can spend in a calendar month, in the server's currency."),
    ] = None
    expires_at: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        Meta(description="By default, never; with the scope `admin`, 90 days from now, which is the latest."),
    ] = None
    act_as: Annotated[
        ActAsBody | None,
        Meta(
            description="Makes a key for an application's server, which names its user in the header "
            "`Threadkeep-User` of every request. Only admins make such keys."
        ),
    ] = None
    may_delete: Annotated[
        bool, Meta(description="With `actAs`: whether it can delete the users that it acts for.")
    ] = False


async def create_key(request: RequestContext, *, body: KeyBody) -> NewKeyView:
    """Make an API key that signs in as you. The response is the only one with the key itself.

    With the scope `admin`, it keeps the role that you have now, until you next sign in without it. Only a
    signed-in person or a key with the scope `admin` makes keys. What a key makes has at most its agents and
    its expiry, shares its budget, and is revoked with it.
    """
    draft = KeyDraft(
        name=body.name,
        scopes=tuple(dict.fromkeys(body.scopes)),
        agents=None if body.agents is None else frozenset(map(_agent_id, body.agents)),
        budget_month=(
            None if body.budget_month is None else parse_amount(body.budget_month, param="budgetMonth")
        ),
        expires_at=body.expires_at and int(body.expires_at.timestamp() * 1000),
        act_as=body.act_as and body.act_as.realm,
        may_delete=body.may_delete,
    )
    key, value = await request.services.keys.create(request.user, draft)
    return NewKeyView(**asdict(key_view(key)), key=value)


async def list_keys(request: RequestContext) -> PageView[KeyView]:
    """List your API keys, newest first, without the keys themselves."""
    keys = await request.services.keys.list(request.user)
    return PageView(items=[key_view(key) for key in keys], next_cursor=None)


async def revoke_key(request: RequestContext, *, key_id: str) -> None:
    """Revoke one of your API keys, and those that it has made. What they have open ends within 5 seconds."""
    await request.services.keys.revoke(request.user, key_id)


def _agent_id(given: str) -> AgentId:
    """Treats an invalid id like an id that doesn't exist."""
    if not is_uuid(given):
        raise AgentNotFound
    return AgentId(given.lower())
