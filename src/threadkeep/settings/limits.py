"""Limit use: what agents may do, and how much one user may."""

from typing import Annotated, Literal

from msgspec import Meta

from threadkeep.domain.errors import InvalidRequest, SettingsError
from threadkeep.domain.money import parse_amount
from threadkeep.settings.tools import ToolSettings


class LimitSettings(ToolSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's limits."""

    allowed_models: Annotated[
        tuple[str, ...],
        Meta(description="Models agents can use besides THREADKEEP_MODEL; comma-separated. Empty: any."),
    ] = ()
    max_reply_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum output tokens per model call, whatever an agent's `maxTokens`; 0: no limit "
            "beyond the agent's or the model's.",
        ),
    ] = 0
    max_iterations: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum model calls per turn, whatever an agent's `maxIterations`; 0: no limit.",
        ),
    ] = 100
    max_message_chars: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum characters per message, whatever `maxMessageChars` is; 0: no limit.",
        ),
    ] = 0
    user_running_turns: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum turns one user can run at once, across all nodes; replies outside "
            "conversations and reruns count; 0: no limit.",
        ),
    ] = 100
    user_turns_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum turns one user can start per minute, across all nodes; compactions count; "
            "0: no limit.",
        ),
    ] = 60
    user_uploads_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum files for messages one user can upload per minute, across all nodes; "
            "0: no limit.",
        ),
    ] = 120
    user_writes_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum things one user can create per minute besides turns, such as conversations, "
            "forks, added messages, agents and keys, across all nodes; 0: no limit. Not for `local`, nor for "
            "a client in the server's own process.",
        ),
    ] = 600
    user_documents: Annotated[
        int,
        Meta(ge=0, description="Maximum number of documents across all agents of one owner; 0: no limit."),
    ] = 10_000
    user_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum bytes of one user: the text of conversations and agents, files of messages, "
            "sent or not, identical ones counted once, and the documents of the user's agents. Beyond it, "
            "the user can't create anything and no turn starts; running turns finish; 0: no limit.",
        ),
    ] = 10 * 1024**3
    conversation_messages: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum messages of a conversation that a user imports from another product or "
            "forks, or adds messages to without a turn; turns, cards and Threadkeep's own exports aren't "
            "limited; 0: no limit.",
        ),
    ] = 100_000
    max_unsent_file_bytes: Annotated[
        int,
        Meta(ge=1024, description="Maximum total size of a user's uploaded files that no message uses yet."),
    ] = 500 * 1024 * 1024
    max_import_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            description="Maximum size of an export from ChatGPT, Claude or Threadkeep that a user imports.",
        ),
    ] = 1024**3
    user_budget_day: Annotated[
        str | float,
        Meta(description="How much one user can spend on models per day, such as 2.50; 0: no limit."),
    ] = "0"
    user_budget_month: Annotated[
        str | float,
        Meta(description="How much one user can spend on models per month; 0: no limit."),
    ] = "0"
    currency: Annotated[
        str,
        Meta(pattern="^[A-Z]{3}$", description="Currency of prices, costs and budgets, such as EUR."),
    ] = "USD"
    publish: Annotated[
        Literal["owner", "admin"],
        Meta(description="Who can make an agent public: owner (each owner their own agents), or admin."),
    ] = "owner"
    sharing: Annotated[
        Literal["off", "users", "anyone"],
        Meta(
            description="Who can open what users share by a link: users (everyone signed in), anyone who has "
            "the link, or off (nobody; nothing can be shared)."
        ),
    ] = "users"
    offline: Annotated[
        bool,
        Meta(
            description="Whether the web app opens without the server, and users can keep conversations on "
            "their device; false removes both from their browsers."
        ),
    ] = True

    def check_budgets(self) -> None:
        """Rejects what is not an amount of money."""
        for name in ("user_budget_day", "user_budget_month"):
            try:
                parse_amount(getattr(self, name))
            except InvalidRequest as exc:
                raise SettingsError(f"THREADKEEP_{name.upper()}: {exc.message}") from exc
