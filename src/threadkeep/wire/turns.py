"""Views of turns and usage."""

import datetime
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.turn import TurnStatus, WaitsFor
from threadkeep.wire.messages import CostView, FailureView, UsageView
from threadkeep.wire.view import (
    CompleteListView,
    Id,
    OfAgent,
    OfConversation,
    OfTurn,
    OwnId,
    RunAlias,
    Time,
    View,
)


class StartedTurnView(View, frozen=True, kw_only=True):
    """A turn that has started."""

    turn_id: Annotated[Id, Meta(description="The turn; `GET /api/turns/{id}/events` streams its events.")]
    user_message_id: Annotated[Id, Meta(description="The message that the turn answers.")]
    assistant_message_id: Annotated[Id, Meta(description="The answer, which is empty at first.")]


class TurnView(View, frozen=True, kw_only=True):
    """A turn's status."""

    id: OwnId
    run_id: RunAlias
    conversation_id: OfConversation
    user_message_id: Annotated[Id, Meta(description="The message that it answers.")]
    assistant_message_id: Annotated[Id, Meta(description="The answer that the turn writes.")]
    status: Annotated[TurnStatus, Meta(description="Whether it runs, waits for its user, or how it ended.")]
    waits_for: Annotated[
        WaitsFor | None,
        Meta(
            description="A person's decision, or a process that runs the program of its agent; `null` if it "
            "waits for neither."
        ),
    ] = None
    model: Annotated[str | None, Meta(description="The model that answered, as `gateway/model`.")]
    started_at: Annotated[Time, Meta(description="When the turn began, in UTC.")]
    ended_at: Annotated[Time | None, Meta(description="When it ended; null while it runs or waits.")]
    usage: Annotated[UsageView | None, Meta(description="The tokens that it used; null until that is known.")]
    cost: Annotated[CostView | None, Meta(description="`null` if a price is unknown.")] = None
    error: Annotated[FailureView | None, Meta(description="Why it failed; null unless it did.")]


class ComponentReceiptView(View, frozen=True, kw_only=True):
    """A part of the system prompt. Only the agent's owner and admins see `text`."""

    name: Annotated[str, Meta(description="What part of the prompt it is, such as `role`.")]
    sha256: Annotated[str, Meta(description="The hash of the text: the same hash means the same text.")]
    length: Annotated[int, Meta(description="How many characters the model got.")]
    truncated: Annotated[bool, Meta(description="Whether it was too long and had been shortened.")]
    text: Annotated[
        str | UnsetType, Meta(description="The text itself, for the agent's owner and admins.")
    ] = UNSET


class SentFileView(View, frozen=True, kw_only=True):
    """A file sent to the model as is, with its estimated cost in tokens."""

    type: Annotated[
        Literal["image", "document"], Meta(description="Whether the model got an image or a document.")
    ]
    file_name: Annotated[str, Meta(description="The name of the file that was sent.")]
    tokens: Annotated[int, Meta(description="An estimate of what it cost in tokens.")]


class ReceiptView(View, frozen=True, kw_only=True):
    """What the model received in a turn; enough to rebuild the same request.

    `sha256` identifies the system prompt and the messages: if it is the same, the model received the same.
    """

    turn_id: OfTurn
    sha256: Annotated[str, Meta(description="The hash of the system prompt and the messages.")]
    model: Annotated[str | None, Meta(description="The model that was asked, as `gateway/model`.")]
    components: Annotated[
        Sequence[ComponentReceiptView], Meta(description="The parts of the system prompt, in order.")
    ]
    summary: Annotated[
        str | None, Meta(description="The summary of older messages that the model received, if any.")
    ]
    message_ids: Annotated[Sequence[Id], Meta(description="The messages that the model received, in order.")]
    thoughts: Annotated[bool, Meta(description="Whether earlier reasoning was part of the request.")]
    tools: Annotated[Sequence[str], Meta(description="The names of the tools that the model could call.")]
    temperature: Annotated[
        float | None, Meta(description="How freely the model chose words; null is its default.")
    ]
    max_tokens: Annotated[
        int | None, Meta(description="The most tokens that the reply could have; null means no limit.")
    ]
    token_estimate: Annotated[int, Meta(description="An estimate of the request's length in tokens.")]
    dropped_messages: Annotated[int, Meta(description="How many older messages didn't fit.")]
    shortened_results: Annotated[
        Sequence[str],
        Meta(description="The tool results and files that were sent in shortened form."),
    ]
    files: Annotated[
        Sequence[SentFileView],
        Meta(description="The images and PDFs that were sent as files; other files are sent as text."),
    ]
    prefix_share: Annotated[
        float | None,
        Meta(description="The share of the request that equals the start of the previous one, from 0 to 1."),
    ]


class UsageSumView(View, frozen=True, kw_only=True):
    """The model calls of one group: those that share the values of `by` (date, agent and so on).

    `inputTokens` counts all input; `cacheReadTokens` is the part of it that the provider read from its cache.
    `estimated` if some numbers are estimates.
    """

    date: Annotated[datetime.date | UnsetType, Meta(description="The day, in the operator's time zone.")] = (
        UNSET
    )
    user_id: Annotated[str | UnsetType, Meta(description="The user who sent the requests.")] = UNSET
    agent_id: Annotated[
        Id | UnsetType | None, Meta(description="The agent; null if it was deleted or none was involved.")
    ] = UNSET
    key_id: Annotated[
        Id | UnsetType | None, Meta(description="The API key; `null` for calls without one.")
    ] = UNSET
    model: Annotated[
        str | UnsetType | None, Meta(description="The model, as `gateway/model`; null if it isn't known.")
    ] = UNSET
    purpose: Annotated[
        str | UnsetType, Meta(description="What for: turn, title, compaction, rerun or completion.")
    ] = UNSET
    turns: Annotated[int, Meta(description="How many turns the calls belong to.")]
    calls: Annotated[int, Meta(description="How many calls to models there were.")] = 0
    input_tokens: Annotated[int, Meta(description="The tokens of all input, cached ones included.")]
    output_tokens: Annotated[int, Meta(description="The tokens that the models wrote.")]
    cache_read_tokens: Annotated[
        int, Meta(description="The part of the input that came from the provider's cache.")
    ]
    cache_write_tokens: Annotated[
        int, Meta(description="The part of the input that was written to the cache.")
    ]
    estimated: Annotated[bool, Meta(description="Whether some of the numbers are estimates.")]
    cost: Annotated[
        CostView | None, Meta(description="Of the calls whose price is known; `null` if none is.")
    ] = None
    unpriced_calls: Annotated[int, Meta(description="The calls whose price isn't known.")] = 0
    reported_calls: Annotated[
        int, Meta(description="The calls that agents in code made themselves, and reported afterwards.")
    ] = 0
    reported_cost: Annotated[
        CostView | None,
        Meta(description="What agents in code say that these cost; `null` if they don't. `cost` is ours."),
    ] = None


class BudgetView(View, frozen=True, kw_only=True):
    """A budget of yours, or of an agent or API key of yours. Running calls have `reserved` some of it."""

    scope: Annotated[
        Literal["user", "agent", "key"],
        Meta(description="Whose budget it is: the user's, an agent's or a key's."),
    ]
    id: Annotated[str, Meta(description="The user, agent or API key.")]
    period: Annotated[
        Literal["day", "month"], Meta(description="Whether it holds per day or per calendar month.")
    ]
    limit: Annotated[str, Meta(description="How much can be spent in the period.")]
    spent: Annotated[str, Meta(description="How much was spent in this period so far.")]
    reserved: Annotated[str, Meta(description="What running calls may still cost, set aside.")]
    currency: Annotated[str, Meta(description="The server's currency, such as `USD`.")]
    resets_at: Annotated[Time, Meta(description="When the next period begins, in UTC.")]


class UsageReportView(CompleteListView, frozen=True, kw_only=True):
    """Usage in groups, ordered by what they are grouped by, and your budgets."""

    items: Annotated[
        Sequence[UsageSumView],
        Meta(description="One sum for each group, ordered by what they are grouped by."),
    ]
    budgets: Annotated[
        Sequence[BudgetView], Meta(description="What you and your agents and keys may spend.")
    ] = ()


class RunningTurnView(View, frozen=True, kw_only=True):
    """A turn that runs or waits. `stalled`: its node has stopped responding; another takes it over soon.

    Of an agent in code, `agent` is the program's key, `codeVersion` that of the code that began to run the
    turn, and `worker` the process that runs the program. `step` is the oldest of its steps that have begun
    and not ended, with the time; it is known after a second or two. A turn that nobody runs, because its
    program isn't there, waits for a `worker`; one that waits for an answer, for a `person`.
    """

    id: OwnId
    conversation_id: OfConversation
    user_id: Annotated[str, Meta(description="The user whose turn it is.")]
    agent_id: OfAgent
    node_id: Annotated[str | None, Meta(description="The node that runs it; null while it waits.")]
    model: Annotated[str | None, Meta(description="The model that was chosen, as `gateway/model`.")]
    started_at: Annotated[Time, Meta(description="When the turn began, in UTC.")]
    state: Annotated[
        Literal["running", "aborting", "stalled", "waiting"],
        Meta(description="Whether it runs, stops, waits, or its node is gone."),
    ]
    agent: Annotated[str | None, Meta(description="Of an agent in code: the program's key.")] = None
    code_version: Annotated[
        int | None, Meta(description="Of an agent in code: the version that began the turn.")
    ] = None
    step: Annotated[
        str | None, Meta(description="Of an agent in code: the oldest step that hasn't ended.")
    ] = None
    step_since: Annotated[Time | None, Meta(description="When that step began, in UTC.")] = None
    worker: Annotated[
        str | None, Meta(description="Of an agent in code: the process that runs the program.")
    ] = None
    waits_for: Annotated[WaitsFor | None, Meta(description="What it waits for: a person or a worker.")] = None


class ProgramView(View, frozen=True, kw_only=True):
    """The program of an agent in code."""

    key: Annotated[str, Meta(description="The program's name, as its code registers it.")]
    version: Annotated[int, Meta(description="The version of the code, as it registers it.")]


class WorkerView(View, frozen=True, kw_only=True):
    """A process that runs the programs of agents in code; of the server itself, one for each node.

    `capacity` is how many turns it runs at once, `null` without a limit. `blockedMs`: for how long its event
    loop had not answered when it was heard of last; after ten seconds it gets no new turns.
    """

    id: Annotated[str, Meta(description="The worker's id, new with every start.")]
    name: Annotated[str, Meta(description="What it calls itself, such as its host's name.")]
    node: Annotated[str, Meta(description="The node that it is connected to.")]
    sdk: Annotated[str, Meta(description="Which SDK it uses, with its version.")]
    agents: Annotated[Sequence[ProgramView], Meta(description="The programs that it can run.")]
    capacity: Annotated[int | None, Meta(description="How many turns it takes at once; null means no limit.")]
    running: Annotated[int, Meta(description="How many turns it currently runs.")]
    connected_at: Annotated[Time, Meta(description="When it connected to its node.")]
    last_beat_at: Annotated[Time, Meta(description="When it last showed that it is alive.")]
    blocked_ms: Annotated[
        int, Meta(description="For how long its event loop hasn't answered, in milliseconds.")
    ]
    is_draining: Annotated[bool, Meta(description="Whether it is about to stop and takes no more turns.")]


class WorkersView(CompleteListView, frozen=True, kw_only=True):
    """All workers, on all nodes, the oldest first."""

    items: Annotated[Sequence[WorkerView], Meta(description="The workers of all nodes, the oldest first.")]


class StoppedTurnView(View, frozen=True, kw_only=True):
    """A turn that an admin stopped; `IDLE` if it had already ended."""

    turn_id: Annotated[Id, Meta(description="The turn that the admin named.")]
    status: Annotated[
        Literal["GENERATION_ABORTED", "IDLE"],
        Meta(description="Whether the turn was stopped, or had already ended."),
    ]


class AbortView(View, frozen=True, kw_only=True, omit_defaults=True):
    """The turn that was stopped; `IDLE` if none was running."""

    status: Annotated[
        Literal["GENERATION_ABORTED", "IDLE"],
        Meta(description="Whether a turn was stopped, or none was running."),
    ]
    turn_id: Annotated[Id | None, Meta(description="The turn that was stopped, if one ran.")] = None
    message_id: Annotated[Id | None, Meta(description="The answer as far as it got.")] = None
    content: Annotated[str | None, Meta(description="What the agent had written so far.")] = None
