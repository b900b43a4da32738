"""The tools: their arguments, their results and what they do. Their descriptions are for models."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from threadkeep.clock import system_clock
from threadkeep.domain.approval import ApprovalAction, ApprovalScope, Decision
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import Conflict
from threadkeep.domain.key import Scope
from threadkeep.domain.message import Message, MessageRole, MessageStatus, MessageWindow, SaidHit
from threadkeep.domain.turn import BegunWith, Turn
from threadkeep.handling.paging import PageQuery
from threadkeep.handling.retries import is_retry
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.searching import OneAgent, Search, Since, Until
from threadkeep.protocols.mcp.turns import artifact_uris, last_event_of, own_turn
from threadkeep.services.outside import new_conversation
from threadkeep.services.reach import check_reach
from threadkeep.services.sending import NewConversation, NewMessage
from threadkeep.wire.approvals import ApprovalView, approval_view
from threadkeep.wire.decoding import invalid_request
from threadkeep.wire.view import Id, PageView, Time, View, rfc3339

PROTOCOL = "mcp"
MOST_AGENTS = 200


class Arguments(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The common base of all tools' arguments."""


class NoArguments(Arguments, frozen=True, kw_only=True):
    """A tool without arguments."""


class AgentView(View, frozen=True, kw_only=True):
    """An agent to talk to."""

    id: Id
    name: str
    description: str
    is_default: bool


class AgentsView(View, frozen=True, kw_only=True):
    """The agents that the user can talk to."""

    agents: Sequence[AgentView]


async def list_agents(request: RequestContext, arguments: NoArguments) -> AgentsView:
    """List the agents that you can send messages to."""
    agents = await request.services.agents.page(request.user, after=None, offset=0, limit=MOST_AGENTS)
    default = await request.services.agents.default()
    views = [
        AgentView(id=it.id, name=it.name, description=it.description, is_default=it.id == default.id)
        for it in agents
    ]
    return AgentsView(agents=views)


class SendMessage(Arguments, frozen=True, kw_only=True):
    """A message to an agent."""

    content: Annotated[str, Meta(description="What to tell or ask the agent.")]
    conversation_id: Annotated[
        str | None, Meta(description="The conversation to continue; without it, a new one begins.")
    ] = None
    agent_id: Annotated[
        str | None, Meta(description="For a new conversation: an agent; by default, the default agent.")
    ] = None
    model: Annotated[str | None, Meta(description="A model that the agent offers instead of its own.")] = None


async def send_message(request: RequestContext, arguments: SendMessage) -> tuple[Turn, int]:
    """Send a message to an agent and wait for its reply. The conversation is kept: to continue it, send its
    id. A message to an agent that is still answering stops that answer.
    """
    turn, _ = await request.services.outside.send(
        request.user,
        await _conversation_for(request, arguments),
        NewMessage(
            arguments.content,
            model=arguments.model,
            begun_with=BegunWith(protocol=PROTOCOL, asked_model=arguments.model),
            is_retry=is_retry(request.http),
        ),
    )
    return turn, 0


async def _conversation_for(request: RequestContext, message: SendMessage) -> Conversation | NewConversation:
    """The conversation that a message names, or one that it opens."""
    if message.conversation_id is not None:
        conversation = await _own_conversation(request, message.conversation_id)
        if message.agent_id is not None and message.agent_id.lower() != conversation.agent_id:
            raise Conflict("This conversation is with another agent. Leave `agentId` out.")
        return conversation
    agents = request.services.agents
    if message.agent_id is None:
        agent = await agents.default_of(request.user)
    else:
        agent = await agents.get(request.user, message.agent_id)
    await check_reach(request.services.store, request.user, {"agent_id": agent.id})
    return new_conversation(agent)


async def _own_conversation(request: RequestContext, conversation_id: str) -> Conversation:
    await check_reach(request.services.store, request.user, {"conversation_id": conversation_id})
    return await request.services.conversations.get(request.user, conversation_id)


class AnswerApproval(Arguments, frozen=True, kw_only=True):
    """The user's decision on a request."""

    turn_id: Annotated[str, Meta(description="`turnId` of the request.")]
    request_id: Annotated[str, Meta(description="`requestId` of the request.")]
    action: Annotated[
        Literal["allow", "deny", "edit", "answer"],
        Meta(description="For a tool: `allow`, `deny` or `edit`; for a question: `answer` or `deny`."),
    ]
    scope: Annotated[
        ApprovalScope,
        Meta(description="`conversation` allows every further call of this tool in the conversation."),
    ] = ApprovalScope.ONCE
    arguments: Annotated[
        dict[str, Any] | None, Meta(description="With `edit`: the arguments to call the tool with.")
    ] = None
    content: Annotated[
        Any, Meta(description="With `answer`: a text, or an object that matches the request's schema.")
    ] = None


async def answer_approval(request: RequestContext, arguments: AnswerApproval) -> tuple[Turn, int]:
    """Answer a request of a turn that waits (status WAITING) as its user has decided, and wait for the reply.
    Ask the user first; never decide for them.
    """
    turn = await own_turn(request, arguments.turn_id)
    seen = await last_event_of(request, turn)
    decision = Decision(
        action=ApprovalAction(arguments.action),
        at=system_clock(),
        scope=arguments.scope,
        arguments=arguments.arguments,
        content=arguments.content,
    )
    turn = await request.services.approvals.decide(request.user, turn.id, arguments.request_id, decision)
    return turn, seen


class ReadConversation(Arguments, frozen=True, kw_only=True):
    """Which part of a conversation."""

    conversation_id: str
    limit: Annotated[int, Meta(ge=1, le=200, description="How many messages, the latest first.")] = 20
    before_seq: (
        Annotated[int, Meta(ge=1, description="Only messages before this `seq`, to read older ones.")] | None
    ) = None


class MessageView(View, frozen=True, kw_only=True):
    """A message of a conversation."""

    id: Id
    seq: int
    role: MessageRole
    status: MessageStatus
    content: str
    created_at: Time
    artifacts: Sequence[str] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ConversationView(View, frozen=True, kw_only=True):
    """A conversation and its latest messages, oldest first."""

    id: Id
    agent_id: Id
    title: str | None
    running_turn_id: Annotated[Id | None, Meta(description="The turn that runs or waits, if any.")]
    has_older: bool
    messages: Sequence[MessageView]
    approvals: Annotated[Sequence[ApprovalView], Meta(description="What that turn asks its user.")]


async def read_conversation(request: RequestContext, arguments: ReadConversation) -> ConversationView:
    """Read the latest messages of a conversation, also of one whose reply is still being written."""
    await check_reach(request.services.store, request.user, {"conversation_id": arguments.conversation_id})
    window = MessageWindow(before_seq=arguments.before_seq, newest_first=True)
    page = await request.services.conversations.bare_messages(
        request.user, arguments.conversation_id, window, offset=0, limit=arguments.limit + 1
    )
    turn_id = page.conversation.active_turn_id
    running = await request.services.turns.get(request.user, turn_id) if turn_id else None
    waiting = await request.services.approvals.open(request.user, running) if running else ()
    return ConversationView(
        id=page.conversation.id,
        agent_id=page.conversation.agent_id,
        title=page.conversation.title,
        running_turn_id=turn_id,
        has_older=len(page.messages) > arguments.limit or page.is_cut,
        messages=[_message_view(it) for it in page.messages[: arguments.limit][::-1]],
        approvals=[approval_view(it) for it in waiting],
    )


def _message_view(message: Message) -> MessageView:
    return MessageView(
        id=message.id,
        seq=message.seq,
        role=message.role,
        status=message.status,
        content=message.text,
        created_at=rfc3339(message.created_at),
        artifacts=artifact_uris(message) or UNSET,
        error=message.error.message if message.error else UNSET,
    )


class SearchConversations(Arguments, frozen=True, kw_only=True):
    """What to search for."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=500,
            description="Words that must all occur; the last may be the beginning of one.",
        ),
    ]
    agent_id: OneAgent = None
    since: Since = field(name="from", default=None)
    until: Until = field(name="to", default=None)
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of hits.")] = 20
    cursor: Annotated[str | None, Meta(description="`nextCursor` of the previous page.")] = None


class HitView(View, frozen=True, kw_only=True):
    """A matching message or, without `messageId`, a conversation with a matching title."""

    conversation_id: Id
    agent_id: Id
    title: str | None
    message_id: Id | None
    seq: int | None
    role: MessageRole | None
    snippet: str
    created_at: Time


async def search_conversations(request: RequestContext, arguments: SearchConversations) -> PageView[HitView]:
    """Search the user's own messages and titles of conversations, newest first."""
    query = PageQuery(limit=arguments.limit, cursor=arguments.cursor)
    asked = Search(arguments.query, arguments.agent_id, arguments.since, arguments.until)
    return await asked.page(request, query, _hit_view)


def _hit_view(hit: SaidHit) -> HitView:
    return HitView(
        conversation_id=hit.conversation_id,
        agent_id=hit.agent_id,
        title=hit.title,
        message_id=hit.message_id,
        seq=hit.seq,
        role=hit.role,
        snippet=hit.snippet,
        created_at=rfc3339(hit.created_at),
    )


@dataclass(frozen=True, slots=True)
class ReadingTool:
    """A tool that returns what is there."""

    name: str
    title: str
    run: Callable[[RequestContext, Any], Awaitable[Struct]]
    arguments: type[Arguments]
    result: Any
    scope: Scope = Scope.READ


@dataclass(frozen=True, slots=True)
class TurnTool:
    """A tool that returns a turn once it has ended or waits, and the number of the last event before it."""

    name: str
    title: str
    run: Callable[[RequestContext, Any], Awaitable[tuple[Turn, int]]]
    arguments: type[Arguments]
    scope: Scope = Scope.CHAT


Tool = ReadingTool | TurnTool

TOOLS: tuple[Tool, ...] = (
    ReadingTool("list_agents", "List agents", list_agents, NoArguments, AgentsView),
    TurnTool("send_message", "Send a message", send_message, SendMessage),
    TurnTool("answer_approval", "Answer a request", answer_approval, AnswerApproval),
    ReadingTool(
        "read_conversation", "Read a conversation", read_conversation, ReadConversation, ConversationView
    ),
    ReadingTool(
        "search_conversations",
        "Search conversations",
        search_conversations,
        SearchConversations,
        PageView[HitView],
    ),
)


def decode_arguments(tool: Tool, given: object) -> Arguments:
    """A tool's arguments, checked."""
    try:
        return msgspec.convert(given, tool.arguments)
    except msgspec.ValidationError as exc:
        raise invalid_request(exc, tool.arguments) from exc


def object_schema(kind: Any) -> dict[str, Any]:
    """A Struct's JSON Schema; MCP wants the object itself at the top."""
    (reference,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    schema = definitions.pop(reference["$ref"].removeprefix("#/$defs/"))
    return {**schema, "$defs": definitions} if definitions else schema
