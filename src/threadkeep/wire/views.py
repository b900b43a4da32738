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
from threadkeep.domain.feedback import Feedback
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import (
    Message,
)
from threadkeep.domain.queued import QueuedMessage
from threadkeep.domain.user import User, UserRole
from threadkeep.ports.mcp import ServerReport
from threadkeep.wire.gateways import GatewayStateView
from threadkeep.wire.mcp_servers import (
    McpServerSettingsView,
    McpServerView,
    server_settings_view,
    server_view,
)
from threadkeep.wire.messages import MessageView, message_views
from threadkeep.wire.queue import QueuedMessageView, queued_message_view
from threadkeep.wire.tool_rules import ToolRuleView, tool_rule_view
from threadkeep.wire.view import DomainAlias, Id, Time, View, rfc3339, time_or_none


class MeView(View, frozen=True, kw_only=True):
    """The signed-in user."""

    id: str
    role: UserRole
    installation: str
    """An id of this server's database: what a front end kept for one is for no other."""


class HealthView(View, frozen=True, kw_only=True):
    """The server's status."""

    status: str
    version: str


class BlockedLoopView(View, frozen=True, kw_only=True):
    """What blocks the agents' event loop: which of them, in which line of its code, for how long."""

    agent: str | None
    place: str
    blocked_ms: int


class ReadinessView(HealthView, frozen=True, kw_only=True):
    """Whether the server can serve requests, which background loops keep failing, and how gateways are.

    `blocked`: an agent in code keeps the event loop that all of them share from answering.
    """

    failing: list[str]
    gateways: Sequence[GatewayStateView]
    blocked: Annotated[
        BlockedLoopView | UnsetType,
        Meta(description="For admins, if it has lasted for more than ten seconds."),
    ] = UNSET


class AgentSettingsView(View, frozen=True, kw_only=True):
    """An agent's limits and behavior; 0 means no limit."""

    retrieval_top_k: int
    retrieval_threshold: float
    retrieval_mode: RetrievalMode
    context_messages: int
    context_thoughts: bool
    max_message_chars: int
    max_iterations: int
    generation_timeout_s: float
    conversation_mode: ConversationMode
    compaction_threshold: int
    auto_compact: bool
    temperature: float | None
    max_tokens: int | None
    tool_result_tokens: int
    mcp_servers: Mapping[str, McpServerSettingsView]
    on_crash: OnCrash
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
    budget_month: Annotated[
        str,
        Meta(
            description="How much all its users together can spend on its model calls in a month, as a "
            "decimal number."
        ),
    ] = "0.00"
    starters: Annotated[
        Sequence[str], Meta(description="Messages that a front end offers to send in a new conversation.")
    ] = ()
    icon: Annotated[
        AgentIcon, Meta(description="What a front end shows beside its name: the first letter, or a picture.")
    ] = AgentIcon.LETTER
    color: Annotated[
        AgentColor, Meta(description="The color of its icon; `auto` is one derived from its id.")
    ] = AgentColor.AUTO


class EngineView(View, frozen=True, kw_only=True):
    """What replies for an agent: a model with its settings (`config`), or a program (`code`).

    `ready` means that some process runs the program now. Only the agent's owner and admins see `key`, the
    `version` of the newest code, and how many `workers` run it.
    """

    kind: Literal["config", "code"]
    status: Literal["ready", "absent"] | UnsetType = UNSET
    key: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    workers: int | UnsetType = UNSET


CONFIGURED = EngineView(kind="config")


class AgentView(View, frozen=True, kw_only=True):
    """An agent. Only its owner and admins see its prompt, model and settings; all see its `starters`,
    `icon` and `color`.

    `ownerId` is null for the default agent, which nobody owns.
    """

    id: Id
    name: str
    description: str
    starters: Annotated[Sequence[str], Meta(description="Those of its settings.")] = ()
    icon: Annotated[AgentIcon, Meta(description="That of its settings.")] = AgentIcon.LETTER
    color: Annotated[AgentColor, Meta(description="That of its settings.")] = AgentColor.AUTO
    visibility: Visibility
    is_default: bool
    created_at: Time
    updated_at: Time
    owner_id: str | None
    engine: EngineView = CONFIGURED
    read_only: Annotated[
        Sequence[str], Meta(description="The fields that its code declares, such as `settings.starters`.")
    ] = ()
    primary_role_id: str | UnsetType = UNSET
    system_prompt: str | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    settings: AgentSettingsView | UnsetType = UNSET
    version: int | UnsetType = UNSET


class AgentDetailView(AgentView, frozen=True, kw_only=True):
    """An agent with all its MCP servers, built-in and its own; for its owner and admins."""

    mcp_servers: Sequence[McpServerView] | UnsetType = UNSET


class ConversationView(View, frozen=True, kw_only=True):
    """A conversation without its messages. Only create and detail responses include `sessionId`.

    In the list of deleted conversations, each has `deletedAt` and `purgeAt`: you can restore it until then.
    """

    id: Id
    agent_id: Id
    domain_id: DomainAlias
    user_id: str
    title: str | None
    status: ListedStatus
    is_main: bool
    pinned: Annotated[bool, Meta(description="The page shows it first; lists keep the order of activity.")]
    metadata: Mapping[str, Any]
    active_turn_id: Id | None
    message_count: int
    started_at: Time
    created_at: Time
    updated_at: Time
    last_message_at: Time | None
    deleted_at: Time | UnsetType = UNSET
    purge_at: Time | UnsetType = UNSET
    session_id: str | UnsetType = UNSET


class ConversationDetailView(ConversationView, frozen=True, kw_only=True):
    """A conversation with its latest messages, oldest first; `nextCursor` continues with older ones."""

    messages: Sequence[MessageView]
    next_cursor: str | None
    summary: str | None
    queued: Annotated[Sequence[QueuedMessageView], Meta(description="The queued messages, next one first.")]


class ContextMessageView(View, frozen=True, kw_only=True):
    """An entry of a model's history."""

    role: str
    content: str


class ContextView(View, frozen=True, kw_only=True):
    """The latest messages, ready to send to a model; a summary of archived ones comes first."""

    messages: Sequence[ContextMessageView]


class AuditEntryView(View, frozen=True, kw_only=True):
    """Who changed which agent, and which of its fields."""

    id: Id
    at: Time
    actor_id: str
    action: str
    agent_id: Id | None
    details: Mapping[str, Any]


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
