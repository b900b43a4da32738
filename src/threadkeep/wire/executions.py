"""Views of turns that ran in another engine."""

from collections.abc import Sequence

from threadkeep.wire.view import Id, View


class RunView(View, frozen=True, kw_only=True):
    """The status of a run: its turn, once both its start and its end have arrived."""

    run_id: str
    turn_id: Id | None


class RunsView(View, frozen=True, kw_only=True):
    """The runs that the events belong to."""

    items: Sequence[RunView]
