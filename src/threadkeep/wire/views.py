"""Views of users, agents and conversations."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict

from threadkeep.domain.agent import (
    ABSENT,
    Agent,
    AgentCode,
    AgentColor,
    AgentIcon,
    AuditEntry,
    ConversationMode,
    OnCrash,
    RetrievalMode,
    Served,
    Visibility,
)
from threadkeep.domain.conversation import Conversation, ListedStatus
from threadkeep.domain.engines.remote_agent import RemoteAgent
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import (
    Message,
)
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.secret import MASK
from threadkeep.domain.tool_rules import rules_without_server
from threadkeep.domain.user import Movable, User, UserRole
from threadkeep.ports.mcp import ServerReport
from threadkeep.wire.gateways import GatewayStateView
from threadkeep.wire.mcp_servers import (
    Masked,
    McpServerSettingsView,
    McpServerView,
    server_settings_view,
    server_view,
)
from threadkeep.wire.messages import MessageView, message_views
from threadkeep.wire.queue import QueuedMessageView, queued_message_view
from threadkeep.wire.tool_rules import RulesWithoutServer, ToolRuleView, tool_rule_view
from threadkeep.wire.view import (
    CreatedAt,
    DomainAlias,
    Id,
    OwnId,
    Time,
    UpdatedAt,
    View,
    rfc3339,
    time_or_none,
)


class MovableView(View, frozen=True, kw_only=True):
    """How much of a user can be moved to another, or was."""

    conversations: Annotated[int, Meta(description="How many conversations, with all that is in them.")]
    agents: Annotated[int, Meta(description="How many agents that the user owns.")]
    briefings: Annotated[int, Meta(description="How many briefings that the user received.")]
    memories: Annotated[int, Meta(description="How many facts that agents remember of the user.")]


class MeView(View, frozen=True, kw_only=True):
    """The signed-in user."""

    id: Annotated[str, Meta(description="Your user id, as the token names you.")]
    role: Annotated[UserRole, Meta(description="Whether you are a user or an admin.")]
    installation: Annotated[
        str, Meta(description="An id of this server's database: keep nothing of one for another.")
    ]
    name: Annotated[
        str | UnsetType, Meta(description="What your sign-in calls you; absent if it doesn't.")
    ] = UNSET
    groups: Annotated[
        Sequence[str] | UnsetType,
        Meta(description="What your sign-in says you belong to; absent if nothing."),
    ] = UNSET
    delete_after_days: Annotated[
        int | UnsetType,
        Meta(
            description="After how many days without a message this server deletes conversations, except "
            "pinned ones; absent if it doesn't. Agents can have fewer."
        ),
    ] = UNSET
    reassignable: Annotated[
        MovableView | UnsetType,
        Meta(
            description="For admins: what `local` has from before people signed in, which "
            "`POST /api/admin/reassign-local` moves to you; absent if nothing."
        ),
    ] = UNSET


def movable_view(counts: Movable) -> MovableView:
    """What can be moved, or was."""
    return MovableView(
        conversations=counts.conversations,
        agents=counts.agents,
        briefings=counts.briefings,
        memories=counts.memories,
    )


class HealthView(View, frozen=True, kw_only=True):
    """The server's status."""

    status: Annotated[str, Meta(description="`ok` of `/healthz`; `ready` or `degraded` of `/readyz`.")]
    version: Annotated[str, Meta(description="The server's version, such as 0.2.0.")]


class BlockedLoopView(View, frozen=True, kw_only=True):
    """What blocks the agents' event loop: which of them, in which line of its code, for how long."""

    agent: Annotated[str | None, Meta(description="The program that blocks it, by its key, if known.")]
    place: Annotated[str, Meta(description="The file, line and function in its code.")]
    blocked_ms: Annotated[int, Meta(description="For how long so far, in milliseconds.")]


class ReadinessView(HealthView, frozen=True, kw_only=True):
    """Whether the server can serve requests, which background loops keep failing, and how gateways are.

    `blocked`: an agent in code keeps the event loop that all of them share from answering.
    """

    failing: Annotated[list[str], Meta(description="The background loops that keep failing, by name.")]
    gateways: Annotated[Sequence[GatewayStateView], Meta(description="Every gateway, and whether it works.")]
    blocked: Annotated[
        BlockedLoopView | UnsetType,
        Meta(description="For admins, if it has lasted for more than ten seconds."),
    ] = UNSET


class AgentSettingsView(View, frozen=True, kw_only=True):
    """An agent's limits and behavior; 0 means no limit."""

    retrieval_top_k: Annotated[int, Meta(description="The most passages that a search returns.")]
    retrieval_threshold: Annotated[
        float, Meta(description="The lowest score of a passage that the model gets.")
    ]
    retrieval_mode: Annotated[
        RetrievalMode, Meta(description="Whether the model searches documents itself, or every message does.")
    ]
    context_messages: Annotated[
        int, Meta(description="The most messages that the model receives; 0 means no limit.")
    ]
    context_thoughts: Annotated[
        bool, Meta(description="Whether the model receives its earlier reasoning again.")
    ]
    max_message_chars: Annotated[
        int, Meta(description="The most characters of a user's message; 0 means no limit.")
    ]
    max_iterations: Annotated[int, Meta(description="The most model calls in one turn; 0 means no limit.")]
    generation_timeout_s: Annotated[
        float, Meta(description="How long a turn may work, in seconds, without waiting; 0 means no limit.")
    ]
    conversation_mode: Annotated[
        ConversationMode, Meta(description="Whether a user may have several conversations with it, or one.")
    ]
    compaction_threshold: Annotated[
        int, Meta(description="How many messages it takes until they can be summarized.")
    ]
    auto_compact: Annotated[
        bool, Meta(description="Whether older messages are summarized by themselves once there are enough.")
    ]
    temperature: Annotated[
        float | None, Meta(description="How freely the model chooses words; null is its default.")
    ]
    max_tokens: Annotated[
        int | None, Meta(description="The most tokens of one reply; null means the model's own limit.")
    ]
    tool_result_tokens: Annotated[
        int, Meta(description="The most tokens of a tool's result that the model gets; 0 means no limit.")
    ]
    mcp_servers: Annotated[
        Mapping[str, McpServerSettingsView],
        Meta(description="The agent's own servers by name, with masked secrets."),
    ]
    on_crash: Annotated[OnCrash, Meta(description="Whether a turn continues after its server died, or ends.")]
    approval_timeout_s: Annotated[
        float, Meta(description="How long a turn waits for its user, in seconds; 0 means forever.")
    ]
    ask_user: Annotated[
        bool, Meta(description="Whether the model can ask the user questions while it works.")
    ]
    client_tools: Annotated[
        bool, Meta(description="Whether requests can bring tools that the client runs.")
    ] = True
    user_instructions: Annotated[
        bool, Meta(description="Whether the model gets the instructions that its user gives to every agent.")
    ] = True
    tools: Annotated[
        Mapping[str, ToolRuleView],
        Meta(
            description="Rules by `server.tool`, `server.*` or `*`; the most specific one applies. `*` "
            "doesn't include tools that the client runs: use `client.*`."
        ),
    ]
    models: Annotated[
        Sequence[str],
        Meta(
            description="The models that a user may choose for a message, besides the agent's own: ids, or "
            "`*` for any."
        ),
    ]
    fallback_models: Annotated[
        Sequence[str], Meta(description="The models to try, in this order, if the chosen one fails.")
    ]
    agents: Annotated[
        Sequence[str],
        Meta(
            description="The agents that its model can call as tools, by id, or by key if they are in code. "
            "Each user's turns call only those that this user may use."
        ),
    ] = ()
    budget_month: Annotated[
        str,
        Meta(
            description="How much all its users together can spend on its model calls in a month, as a "
            "decimal number; 0 means no limit."
        ),
    ] = "0.00"
    delete_after_days: Annotated[
        int,
        Meta(
            description="After how many days without a message conversations with it are deleted, except "
            "pinned ones; 0 leaves it to the server, whose stricter rule counts anyway. Others' "
            "conversations follow it only if they began after it was set; a shorter time, 30 days after "
            "their users are told."
        ),
    ] = 0
    starters: Annotated[
        Sequence[str], Meta(description="Messages that a front end offers to send in a new conversation.")
    ] = ()
    icon: Annotated[
        AgentIcon, Meta(description="What a front end shows beside its name: the first letter, or a picture.")
    ] = AgentIcon.LETTER
    color: Annotated[
        AgentColor, Meta(description="The color of its icon; `auto` is one derived from its id.")
    ] = AgentColor.AUTO
    output: Annotated[
        Mapping[str, Any] | None,
        Meta(
            description="The JSON schema that every reply must fit: one that doesn't is asked for again, and "
            "then fails with `OUTPUT_INVALID`. The message has the value as `output`. null: replies are text."
        ),
    ] = None


class EngineView(View, frozen=True, kw_only=True):
    """What replies for an agent: a model with its settings (`config`), a program (`code`), or a server of
    somebody else's (`ag-ui`).

    `ready` means that some process runs the program now. Only the agent's owner and admins see `key`, the
    `version` of the newest code, and how many `workers` run it; and `url`, `headers` and `repeat`.
    """

    kind: Annotated[
        Literal["config", "code", "ag-ui"],
        Meta(description="What replies: a model with settings, a program, or another server by AG-UI."),
    ]
    status: Annotated[
        Literal["ready", "absent"] | UnsetType,
        Meta(description="Of a program: whether a worker runs it now. Of another server always `ready`."),
    ] = UNSET
    host: Annotated[
        str | UnsetType,
        Meta(description="Of another server: its host, which receives the users' messages."),
    ] = UNSET
    url: Annotated[str | UnsetType, Meta(description="Of another server: where runs are posted to.")] = UNSET
    headers: Masked | UnsetType = UNSET
    repeat: Annotated[
        bool | UnsetType,
        Meta(description="Of another server: whether a run that was cut off may be made again."),
    ] = UNSET
    key: Annotated[str | UnsetType, Meta(description="Of a program: the name that its code registers.")] = (
        UNSET
    )
    version: Annotated[int | UnsetType, Meta(description="Of a program: the newest version that ran.")] = (
        UNSET
    )
    workers: Annotated[int | UnsetType, Meta(description="Of a program: how many workers can run it.")] = (
        UNSET
    )


CONFIGURED = EngineView(kind="config")


class AgentView(View, frozen=True, kw_only=True):
    """An agent. Only its owner and admins see its prompt, model and settings; all see its `starters`,
    `icon` and `color`.

    `ownerId` is null for the default agent, which nobody owns.
    """

    id: OwnId
    name: Annotated[str, Meta(description="What people call it, in one line.")]
    description: Annotated[str, Meta(description="What it is for, in its owner's words.")]
    starters: Annotated[
        Sequence[str], Meta(description="Messages to offer in a new conversation, from its settings.")
    ] = ()
    icon: Annotated[AgentIcon, Meta(description="What to show beside its name, from its settings.")] = (
        AgentIcon.LETTER
    )
    color: Annotated[AgentColor, Meta(description="The color of the icon, from its settings.")] = (
        AgentColor.AUTO
    )
    visibility: Annotated[Visibility, Meta(description="Who may talk to it: only its owner, or everyone.")]
    is_default: Annotated[bool, Meta(description="Whether it answers where no agent is named.")]
    created_at: CreatedAt
    updated_at: UpdatedAt
    owner_id: Annotated[str | None, Meta(description="The user who made it; null for Threadkeep's own.")]
    engine: Annotated[
        EngineView,
        Meta(description="What replies: a model with these settings, a program, or another server."),
    ] = CONFIGURED
    read_only: Annotated[
        Sequence[str], Meta(description="The fields that its code declares, such as `settings.starters`.")
    ] = ()
    primary_role_id: Annotated[str | UnsetType, Meta(description="The role that its prompt starts with.")] = (
        UNSET
    )
    system_prompt: Annotated[
        str | UnsetType, Meta(description="Its instructions to the model, for its owner and admins.")
    ] = UNSET
    model: Annotated[
        str | UnsetType | None, Meta(description="The model that it asks; null means the server's default.")
    ] = UNSET
    settings: Annotated[
        AgentSettingsView | UnsetType, Meta(description="Its limits and behavior, for its owner and admins.")
    ] = UNSET
    version: Annotated[
        int | UnsetType, Meta(description="Grows with every change; the `ETag` for `If-Match`.")
    ] = UNSET
    applied_version: Annotated[
        int | UnsetType,
        Meta(
            description="Its version when a file was last applied; a later one was changed elsewhere since."
        ),
    ] = UNSET
    rules_without_server: RulesWithoutServer = UNSET


class AgentDetailView(AgentView, frozen=True, kw_only=True):
    """An agent with all its MCP servers, built-in and its own; for its owner and admins."""

    mcp_servers: Annotated[
        Sequence[McpServerView] | UnsetType,
        Meta(description="All its servers, those that are built in first."),
    ] = UNSET


class AgentChangeView(View, frozen=True, kw_only=True):
    """A field that a change would give another value."""

    path: Annotated[
        Sequence[str], Meta(description="The keys that lead to it, such as `settings` and `contextMessages`.")
    ]
    before: Annotated[Any, Meta(description="Its value now; null without one, a mask if it is a secret.")]
    after: Annotated[Any, Meta(description="Its value then; null without one, a mask if it is a secret.")]


class AgentPreviewView(View, frozen=True, kw_only=True):
    """What saving an agent would change. Nothing has been stored."""

    changes: Annotated[
        Sequence[AgentChangeView], Meta(description="The fields that change; none if it is the same already.")
    ]
    requires_token: Annotated[
        bool,
        Meta(
            description="Whether from then on every request needs the server's token, because the agent runs "
            "a program on a server without sign-in."
        ),
    ]
    rules_without_server: RulesWithoutServer = UNSET


class ConversationView(View, frozen=True, kw_only=True):
    """A conversation without its messages. Only create and detail responses include `sessionId`.

    In the list of deleted conversations, each has `deletedAt` and `purgeAt`: you can restore it until then.
    """

    id: OwnId
    agent_id: Annotated[Id, Meta(description="The agent that it is with.")]
    domain_id: DomainAlias
    user_id: Annotated[str, Meta(description="The user whose conversation it is.")]
    title: Annotated[str | None, Meta(description="What lists show; null until somebody writes one.")]
    status: Annotated[ListedStatus, Meta(description="Whether it is active, archived or deleted.")]
    is_main: Annotated[bool, Meta(description="Whether it is the user's main conversation with the agent.")]
    pinned: Annotated[bool, Meta(description="The page shows it first; lists keep the order of activity.")]
    metadata: Annotated[Mapping[str, Any], Meta(description="Your own fields, which models don't see.")]
    active_turn_id: Annotated[Id | None, Meta(description="The turn that runs or waits in it, if one does.")]
    message_count: Annotated[int, Meta(description="How many messages its active branch has.")]
    started_at: Annotated[Time, Meta(description="When it was started; of an import, when it was first.")]
    created_at: CreatedAt
    updated_at: Annotated[Time, Meta(description="When a turn last started or ended, or a card arrived.")]
    last_message_at: Annotated[
        Time | None, Meta(description="When the latest message was sent; null while it is empty.")
    ]
    deletes_at: Annotated[
        Time | UnsetType,
        Meta(
            description="When it is deleted because nobody writes in it; only when that is near. A message "
            "or `pinned` keeps it."
        ),
    ] = UNSET
    deleted_at: Annotated[
        Time | UnsetType, Meta(description="When it was deleted; only for deleted ones.")
    ] = UNSET
    purge_at: Annotated[
        Time | UnsetType, Meta(description="When it will be deleted permanently; only for deleted ones.")
    ] = UNSET
    session_id: Annotated[
        str | UnsetType, Meta(description="What the agent's MCP servers know the session by.")
    ] = UNSET


class ConversationDetailView(ConversationView, frozen=True, kw_only=True):
    """A conversation with its latest messages, oldest first; `nextCursor` continues with older ones."""

    messages: Annotated[
        Sequence[MessageView], Meta(description="The latest messages, at most 50, oldest first.")
    ]
    next_cursor: Annotated[
        str | None,
        Meta(description="For older messages: `cursor` of `GET …/messages`; null if these are all."),
    ]
    summary: Annotated[
        str | None, Meta(description="What replaces archived messages for the model; null without one.")
    ]
    queued: Annotated[Sequence[QueuedMessageView], Meta(description="The queued messages, next one first.")]


class ContextMessageView(View, frozen=True, kw_only=True):
    """An entry of a model's history."""

    role: Annotated[str, Meta(description="Who wrote it: `user`, `assistant` or `system`.")]
    content: Annotated[str, Meta(description="The text, with what tools did told in words.")]


class ContextView(View, frozen=True, kw_only=True):
    """The latest messages, ready to send to a model; a summary of archived ones comes first."""

    messages: Annotated[
        Sequence[ContextMessageView],
        Meta(description="The summary of older messages, if any, and the latest messages."),
    ]


class AuditEntryView(View, frozen=True, kw_only=True):
    """Who changed which agent, and which of its fields."""

    id: OwnId
    at: Annotated[Time, Meta(description="When it was done, in UTC.")]
    actor_id: Annotated[str, Meta(description="The user who did it.")]
    action: Annotated[str, Meta(description="What was done, such as `update` or `abort_turn`.")]
    agent_id: Annotated[Id | None, Meta(description="The agent that it was done to; null if none.")]
    details: Annotated[
        Mapping[str, Any], Meta(description="More about it: which fields, which gateway, key or turn.")
    ]


def agent_view(agent: Agent, user: User, served: Mapping[str, Served]) -> AgentView:
    """An agent as this user sees it; `served` says how programs stand, by key."""
    return AgentView(**_agent_fields(agent, user, served))


def agent_detail_view(
    agent: Agent, user: User, served: Mapping[str, Served], servers: Sequence[ServerReport] | None
) -> AgentDetailView:
    """An agent with all its MCP servers, if the user may see them."""
    shown = UNSET if servers is None else [server_view(report) for report in servers]
    return AgentDetailView(**_agent_fields(agent, user, served), mcp_servers=shown)


def _engine(code: AgentCode, served: Served, *, is_open: bool) -> EngineView:
    status = "ready" if served.is_ready else "absent"
    if not is_open:
        return EngineView(kind="code", status=status)
    return EngineView(kind="code", status=status, key=code.key, version=code.version, workers=served.workers)


def _remote_engine(remote: RemoteAgent, *, is_open: bool) -> EngineView:
    if not is_open:
        return EngineView(kind="ag-ui", status="ready", host=remote.host)
    return EngineView(
        kind="ag-ui",
        status="ready",
        host=remote.host,
        url=remote.url,
        headers=dict.fromkeys(remote.headers, MASK),
        repeat=remote.repeat,
    )


def _agent_fields(agent: Agent, user: User, served: Mapping[str, Served]) -> dict[str, Any]:
    code, is_open = agent.code, agent.is_open_to(user)
    shown: dict[str, Any] = {
        "id": agent.id,
        "name": agent.name,
        "description": agent.description,
        "starters": agent.settings.starters,
        "icon": agent.settings.icon,
        "color": agent.settings.color,
        "visibility": agent.visibility,
        "is_default": agent.is_default,
        "owner_id": agent.owner_id,
        "created_at": rfc3339(agent.created_at),
        "updated_at": rfc3339(agent.updated_at),
    }
    if code is not None:
        shown["engine"] = _engine(code, served.get(code.key, ABSENT), is_open=is_open)
        shown["read_only"] = code.declared
    elif agent.remote is not None:
        shown["engine"] = _remote_engine(agent.remote, is_open=is_open)
    if not is_open:
        return shown
    settings = {name: getattr(agent.settings, name) for name in AgentSettingsView.__struct_fields__}
    servers = agent.settings.mcp_servers.items()
    settings["mcp_servers"] = {name: server_settings_view(server) for name, server in servers}
    settings["tools"] = {name: tool_rule_view(rule) for name, rule in agent.settings.tools.items()}
    return shown | {
        "primary_role_id": agent.primary_role_id,
        "system_prompt": agent.system_prompt,
        "model": agent.model,
        "settings": AgentSettingsView(**settings),
        "version": agent.version,
        "applied_version": agent.applied_version or UNSET,
        "rules_without_server": rules_without_server(agent.settings.tools, agent.settings.mcp_servers)
        or UNSET,
    }


def conversation_view(
    conversation: Conversation, *, with_session: bool = False, purge_at: int | None = None
) -> ConversationView:
    """A conversation without its messages."""
    created_at = rfc3339(conversation.created_at)
    return ConversationView(
        id=conversation.id,
        agent_id=conversation.agent_id,
        domain_id=conversation.agent_id,
        user_id=conversation.user_id,
        title=conversation.title,
        status=conversation.listed_status,
        is_main=conversation.is_main,
        pinned=conversation.is_pinned,
        metadata=conversation.metadata,
        active_turn_id=conversation.active_turn_id,
        message_count=conversation.message_count,
        started_at=created_at,
        created_at=created_at,
        updated_at=rfc3339(conversation.updated_at),
        last_message_at=time_or_none(conversation.last_message_at),
        deletes_at=UNSET if conversation.deletes_at is None else rfc3339(conversation.deletes_at),
        deleted_at=UNSET if conversation.deleted_at is None else rfc3339(conversation.deleted_at),
        purge_at=UNSET if purge_at is None else rfc3339(purge_at),
        session_id=conversation.session_id.reveal() if with_session else UNSET,
    )


def conversation_detail_view(
    conversation: Conversation,
    messages: Sequence[Message],
    siblings: Mapping[MessageId, Sequence[MessageId]],
    feedback: Mapping[MessageId, Feedback],
    *,
    next_cursor: str | None,
    summary: str | None,
    queued: Sequence[QueuedMessage],
) -> ConversationDetailView:
    """A conversation with its latest messages."""
    return ConversationDetailView(
        **asdict(conversation_view(conversation, with_session=True)),
        messages=message_views(conversation, messages, siblings, feedback),
        next_cursor=next_cursor,
        summary=summary,
        queued=[queued_message_view(conversation, message) for message in queued],
    )


def audit_view(entry: AuditEntry) -> AuditEntryView:
    """An entry of the audit log."""
    return AuditEntryView(
        id=entry.id,
        at=rfc3339(entry.at),
        actor_id=entry.actor_id,
        action=entry.action,
        agent_id=entry.agent_id,
        details=entry.details,
    )
