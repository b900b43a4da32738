"""Views of turns that ran in another engine."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadkeep.wire.view import Id, View


class RunView(View, frozen=True, kw_only=True):
    """The status of a run: its turn, once both its start and its end have arrived."""

    run_id: Annotated[str, Meta(description="Your id of the run.")]
    turn_id: Annotated[
        Id | None, Meta(description="The turn it became; null until its start and end arrived.")
    ]


class RunsView(View, frozen=True, kw_only=True):
    """The runs that the events belong to."""

    items: Annotated[Sequence[RunView], Meta(description="The runs of the events that you sent, each once.")]
