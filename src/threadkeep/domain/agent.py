"""An agent, which users talk to. The requirements also call it a domain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

from threadkeep.domain.choice import Choice
from threadkeep.domain.engines.remote_agent import AG_UI_KEY, RemoteAgent
from threadkeep.domain.errors import AgentInCode, AgentNotFound, Forbidden, InvalidRequest
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.domain.mcp import McpServer, StdioServer
from threadkeep.domain.money import amount_text, parse_amount
from threadkeep.domain.outputs.schema import check_output_schema
from threadkeep.domain.retention.rule import MOST_DAYS
from threadkeep.domain.text import check_line, check_storable, normalized
from threadkeep.domain.tool_rules import ToolRule
from threadkeep.domain.user import User

DEFAULT_ROLE_ID = "assistant"
MOST_NAME_CHARACTERS = 100
DAY_S = 24 * 60 * 60

BUILT_IN = "threadkeep:"
"""What the keys of our own programs begin with: no key of an agent in code has a colon."""
ASKING_OTHERS = f"{BUILT_IN}asking-others"
"""The program that runs agents without code whose models can call other agents."""
MOST_ROUNDS = "mostRounds"
"""What it knows of its agent: how often that asks its model at most."""

_NO_SERVERS: Mapping[str, McpServer] = {}
_NO_RULES: Mapping[str, ToolRule] = {}


class Visibility(Choice):
    """Who may talk to an agent: its owner, or everyone."""

    PRIVATE = "private"
    PUBLIC = "public"


class RetrievalMode(Choice):
    """When to search the documents: when the model calls the tool, or automatically for every message."""

    TOOL = "tool"
    AUTO = "auto"


class ConversationMode(Choice):
    """Whether a user may have conversations besides the main one."""

    MULTIPLE = "multiple"
    SINGLE = "single"


class OnCrash(Choice):
    """What happens to a turn whose node dies: another node continues it, or it ends."""

    CONTINUE = "continue"
    INTERRUPT = "interrupt"


class AgentIcon(Choice):
    """What a front end shows beside an agent's name: the name's first letter, or a picture."""

    LETTER = "letter"
    ANCHOR = "anchor"
    BOOK = "book"
    BRIEFCASE = "briefcase"
    BUG = "bug"
    CALCULATOR = "calculator"
    CAMERA = "camera"
    CHART = "chart"
    CODE = "code"
    COMPASS = "compass"
    FLASK = "flask"
    GLOBE = "globe"
    HEART = "heart"
    LANGUAGES = "languages"
    LEAF = "leaf"
    LIGHTBULB = "lightbulb"
    MAIL = "mail"
    MUSIC = "music"
    PALETTE = "palette"
    PEN = "pen"
    PLANE = "plane"
    SCALE = "scale"
    SEARCH = "search"
    SHIELD = "shield"


class AgentColor(Choice):
    """The color of an agent's icon; `auto` is one that a front end derives from the agent's id."""

    AUTO = "auto"
    RED = "red"
    ORANGE = "orange"
    YELLOW = "yellow"
    GREEN = "green"
    TEAL = "teal"
    BLUE = "blue"
    VIOLET = "violet"
    PINK = "pink"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest and the greatest number that an owner can set."""

    least: float
    most: float


Count = Annotated[int, Bounds(0, 1_000_000)]

ANY_MODEL = "*"
MOST_MODELS = 50
MOST_MODEL_CHARACTERS = 200
MOST_OTHERS = 20
MOST_STARTERS = 6
MOST_STARTER_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """An agent's limits and preferences; 0 means no limit.

    To add one, add it here and to `AgentSettingsView`: requests, the database and exports follow.
    """

    retrieval_top_k: Annotated[int, Bounds(1, 100)] = 5
    retrieval_threshold: Annotated[float, Bounds(0, 1)] = 0.3
    retrieval_mode: RetrievalMode = RetrievalMode.TOOL
    context_messages: Count = 20
    context_thoughts: bool = False
    max_message_chars: Annotated[int, Bounds(0, 100_000_000)] = 10_000
    max_iterations: Count = 12
    generation_timeout_s: Annotated[float, Bounds(0, DAY_S)] = 300
    conversation_mode: ConversationMode = ConversationMode.MULTIPLE
    compaction_threshold: Count = 40
    auto_compact: bool = False
    temperature: Annotated[float, Bounds(0, 2)] | None = None
    max_tokens: Annotated[int, Bounds(1, 10_000_000)] | None = None
    tool_result_tokens: Annotated[int, Bounds(0, 10_000_000)] = 32_000
    mcp_servers: Mapping[str, McpServer] = field(default_factory=lambda: _NO_SERVERS)
    on_crash: OnCrash = OnCrash.CONTINUE
    approval_timeout_s: Annotated[float, Bounds(0, 10 * 366 * DAY_S)] = 7 * DAY_S
    ask_user: bool = False
    """Whether the model may ask the user a question in the middle of a turn."""
    client_tools: bool = True
    """Whether requests can bring tools that the client runs."""
    user_instructions: bool = True
    """Whether the instructions that users give to every agent are part of the prompt."""
    tools: Mapping[str, ToolRule] = field(default_factory=lambda: _NO_RULES)
    """Rules by `server.tool`, `server.*` or `*`."""
    models: tuple[str, ...] = ()
    """The models that a user may choose for a message, besides the agent's own; `*` means any."""
    fallback_models: tuple[str, ...] = ()
    """The models to try in this order if the chosen one fails."""
    agents: tuple[str, ...] = ()
    """The agents that its model may call, by their ids; those in code also by their keys."""
    budget_month: str | float = "0.00"
    """How much all users together can spend on the agent's model calls in a month."""
    delete_after_days: Annotated[int, Bounds(0, MOST_DAYS)] = 0
    """After how long without a message conversations with it are deleted; 0 leaves that to the operator."""
    starters: tuple[str, ...] = ()
    """Messages that a front end offers to send in a new conversation."""
    icon: AgentIcon = AgentIcon.LETTER
    color: AgentColor = AgentColor.AUTO
    output: Mapping[str, Any] | None = None
    """The JSON schema that its replies must fit; None if they are text."""

    def __post_init__(self) -> None:
        if self.output is not None:
            check_output_schema(self.output, "settings.output")
        amount = parse_amount(self.budget_month, param="settings.budgetMonth")
        object.__setattr__(self, "budget_month", amount_text(amount))
        for models, param in ((self.models, "models"), (self.fallback_models, "fallbackModels")):
            if len(models) > MOST_MODELS:
                raise InvalidRequest(
                    f"`settings.{param}` can name at most {MOST_MODELS} models.", param=f"settings.{param}"
                )
            for model in models:
                check_line(model, f"settings.{param}", most=MOST_MODEL_CHARACTERS)
        if len(self.agents) > MOST_OTHERS or len(set(self.agents)) < len(self.agents):
            raise InvalidRequest(
                f"`settings.agents` names at most {MOST_OTHERS} agents, each once.", param="settings.agents"
            )
        for other in self.agents:
            check_line(other, "settings.agents", most=MOST_NAME_CHARACTERS)
        if len(self.starters) > MOST_STARTERS:
            raise InvalidRequest(
                f"`settings.starters` can have at most {MOST_STARTERS} messages.", param="settings.starters"
            )
        for starter in self.starters:
            check_line(starter, "settings.starters", most=MOST_STARTER_CHARACTERS)
        if ANY_MODEL in self.fallback_models:
            raise InvalidRequest(
                "`settings.fallbackModels` names models; `*` is for `settings.models`.",
                param="settings.fallbackModels",
            )

    @property
    def runs_programs(self) -> bool:
        """Whether one of its MCP servers is a program, switched off or not."""
        return any(isinstance(server, StdioServer) for server in self.mcp_servers.values())


@dataclass(frozen=True, slots=True)
class Code:
    """The code of an agent that is a program: which agent it is, and how new."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class BlockedLoop:
    """The event loop that programs share doesn't answer: one of them computes or blocks."""

    agent: str | None
    """The program that blocks it, by its key, if that is known."""
    place: str
    """The file, line and function."""
    ms: int
    """For how long so far."""


@dataclass(frozen=True, slots=True)
class Places:
    """How many functions of programs can run at once, how many do, and how many wait for others to end."""

    most: int
    taken: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """What a worker says of itself."""

    is_open: bool = True
    """Whether it takes turns."""
    name: str = ""
    sdk: str = ""
    capacity: int | None = None
    """How many turns it runs at once at most; None without a limit."""
    running: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many turns of each program it runs."""
    blocked_ms: int = 0
    """For how long its event loop has not answered."""


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """A process that runs programs, as it was seen last."""

    node: str
    worker: str
    name: str
    sdk: str
    capacity: int | None
    connected_at: int
    seen_at: int
    blocked_ms: int
    is_open: bool
    codes: Sequence[Code]
    running: int
    """How many turns."""

    @property
    def id(self) -> str:
        """Its id: that of its node, if it is the node itself."""
        return self.worker or self.node

    @property
    def is_draining(self) -> bool:
        """Whether it is ending and takes no more turns."""
        return not self.is_open and not self.blocked_ms


@dataclass(frozen=True, slots=True)
class AgentCode:
    """The program that an agent is, as its newest code declares it."""

    key: str
    """Identifies the program for ever."""
    version: int
    declared: tuple[str, ...] = ()
    """What only the code changes, by the names that clients see: `systemPrompt`, `settings.starters`."""
    timeout_s: float | None = None
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """How a program stands, on all nodes together."""

    workers: int = 0
    """How many processes can run it now."""
    is_awaited: bool = False
    """Whether it ran a short while ago, so that it is worth waiting for."""

    @property
    def is_ready(self) -> bool:
        """Whether anybody can run it now."""
        return self.workers > 0


ABSENT = Served()


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent. `version` counts its changes and guards against lost updates."""

    id: AgentId
    owner_id: UserId | None
    name: str
    description: str
    primary_role_id: str
    system_prompt: str
    model: str | None
    visibility: Visibility
    settings: AgentSettings
    is_default: bool
    version: int
    created_at: int
    updated_at: int
    deleted_at: int | None = None
    code: AgentCode | None = None
    """Set if it is a program."""
    applied_version: int | None = None
    """Its version when it was last written from a file; a later one was changed elsewhere since."""
    remote: RemoteAgent | None = None
    """Set if another server runs it."""

    def __post_init__(self) -> None:
        check_line(self.name, "name", most=MOST_NAME_CHARACTERS)
        check_line(self.primary_role_id, "primaryRoleId", most=100)
        if self.model is not None:
            check_line(self.model, "model", most=MOST_MODEL_CHARACTERS)
        if self.code is not None and self.settings.output is not None:
            raise InvalidRequest(
                "A program decides itself what it replies: `settings.output` is for agents without code.",
                param="settings.output",
            )
        for text, param, most in (
            (self.description, "description", 2_000),
            (self.system_prompt, "systemPrompt", 100_000),
        ):
            if len(text) > most:
                raise InvalidRequest(f"`{param}` can have at most {most} characters.", param=param)
            check_storable(text, param)

    @property
    def program(self) -> str | None:
        """The key of the program that runs its turns: its own code, or one of ours; None if our loop does."""
        if self.code is not None:
            return self.code.key
        if self.remote is not None:
            return AG_UI_KEY
        return ASKING_OTHERS if self.settings.agents else None

    @property
    def program_settings(self) -> Mapping[str, Any]:
        """What a program of ours that runs its turns needs to know of it; raises SecretUnreadable."""
        if self.remote is not None:
            headers = {name: secret.reveal() for name, secret in self.remote.headers.items()}
            return {"url": self.remote.url, "headers": headers, "repeat": self.remote.repeat}
        return {MOST_ROUNDS: self.settings.max_iterations} if self.program == ASKING_OTHERS else {}

    @property
    def timeout_s(self) -> float:
        """How long a reply may take: the smaller of what its owner and its code allow; 0 means no limit."""
        limits = self.settings.generation_timeout_s, (self.code and self.code.timeout_s) or 0
        return min(filter(None, limits), default=0)

    def is_visible_to(self, user: User) -> bool:
        """Whether a user may see this agent and talk to it."""
        is_shown = self.visibility is Visibility.PUBLIC or self.is_open_to(user)
        return self.deleted_at is None and is_shown and user.may_use(self.id)

    def is_open_to(self, user: User) -> bool:
        """Whether a user may see its prompt and change it: its owner and admins."""
        return self.deleted_at is None and (self.owner_id == user.id or user.is_admin)

    def is_owned_by(self, user: User) -> bool:
        """Whether it is the user's own. Agents without an owner, such as the default one, are the admins'."""
        if self.deleted_at is not None:
            return False
        return user.is_admin if self.owner_id is None else self.owner_id == user.id

    def check_visible_to(self, user: User) -> None:
        """Refuses a user who may not see this agent."""
        if not self.is_visible_to(user):
            raise AgentNotFound

    def check_open_to(self, user: User) -> None:
        """Refuses a user who may not change this agent."""
        self.check_visible_to(user)
        if not self.is_open_to(user):
            raise Forbidden("Only the agent's owner or an admin can do this.")

    def check_leaves_code(self, changed: "Agent") -> None:
        """Refuses a change of what the agent's code declares, or that another server runs it instead."""
        if self.code is not None and changed.remote is not None:
            raise AgentInCode("This agent is a program, so no other server can run it.", param="engine")
        for name in self.code.declared if self.code else ():
            if _field(self, name) != _field(changed, name):
                raise AgentInCode(
                    f"The agent's code declares `{name}`; change it there.",
                    param=name,
                    details={"readOnly": list(self.code.declared) if self.code else []},
                )

    def check_name_is_free(self, default: "Agent") -> None:
        """Refuses a public agent whose name others could mistake for the default agent's."""
        if (
            self.visibility is Visibility.PUBLIC
            and not self.is_default
            and _letters(self.name) == _letters(default.name)
        ):
            raise InvalidRequest(
                f"`{default.name}` is reserved for the default agent; choose another name for a public "
                "agent.",
                param="name",
            )

    def delete(self, now: int) -> "Agent":
        """Hides the agent and removes its servers with their secrets; conversations with it stay readable."""
        if self.is_default:
            raise Forbidden("You can't delete the default agent.")
        settings = replace(self.settings, mcp_servers=_NO_SERVERS)
        return replace(
            self,
            settings=settings,
            deleted_at=now,
            updated_at=now,
            version=self.version + 1,
            code=None,
            remote=None,
        )

    def declared_by(self, newer: "Agent") -> "Agent":
        """The agent with what newer code of its declares; the rest stays as an admin has left it."""
        assert newer.code is not None
        before = set(self.code.declared) if self.code else set[str]()
        names = before | set(newer.code.declared)
        fields = {_snake(it): _field(newer, it) for it in names if "." not in it}
        settings = {_snake(it.partition(".")[2]): _field(newer, it) for it in names if "." in it}
        timeout_s = newer.code.timeout_s
        if timeout_s is not None and (self.code is None or self.code.timeout_s != timeout_s):
            settings["generation_timeout_s"] = timeout_s
        return replace(
            self,
            **cast("dict[str, Any]", fields),
            settings=replace(self.settings, **cast("dict[str, Any]", settings)),
            code=newer.code,
            updated_at=newer.updated_at,
            version=self.version + 1,
        )


def _field(agent: Agent, name: str) -> object:
    first, _, setting = name.partition(".")
    return getattr(agent.settings, _snake(setting)) if setting else getattr(agent, _snake(first))


def _snake(name: str) -> str:
    return "".join(f"_{it.lower()}" if it.isupper() else it for it in name)


def _letters(name: str) -> str:
    """A name as people read it: regardless of case, width, spaces and invisible characters."""
    folded = normalized("NFKC", name, most=MOST_NAME_CHARACTERS).casefold()
    return "".join(filter(str.isalnum, folded)) or folded


@dataclass(frozen=True, slots=True)
class AgentDraft:
    """A user's input for a new agent."""

    name: str
    description: str = ""
    primary_role_id: str = DEFAULT_ROLE_ID
    system_prompt: str = ""
    model: str | None = None
    visibility: Visibility = Visibility.PRIVATE
    settings: AgentSettings = field(default_factory=AgentSettings)
    remote: RemoteAgent | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who changed which agent."""

    id: str
    at: int
    actor_id: UserId
    action: str
    agent_id: AgentId | None
    details: Mapping[str, object]
