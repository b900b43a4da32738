"""Rest: nothing is left over."""

from collections.abc import Iterator

from tests.proof.checker.found import Found


def nothing_is_left_over(found: Found) -> Iterator[str]:
    """No lease, no open request, no job, no half-moved path; what waits in a queue is held, and says so."""
    for id_, node in found.rows("SELECT id, node_id FROM tk_turns WHERE lease_until IS NOT NULL"):
        yield f"turn {id_} still has a lease of {node}"
    for id_, turn in found.rows(
        """SELECT conversation.id, conversation.active_turn_id FROM tk_conversations AS conversation
        WHERE conversation.active_turn_id IS NOT NULL"""
    ):
        yield f"conversation {id_} says that turn {turn} is active"
    for id_, turn in found.rows("SELECT id, turn_id FROM tk_approvals WHERE answered_at IS NULL"):
        yield f"request {id_} of turn {turn} is open, and its turn is over"
    for id_, kind in found.rows("SELECT id, kind FROM tk_jobs"):
        yield f"job {kind} {id_} was never done"
    for talk, state in found.rows("SELECT conversation_id, state FROM tk_path_moves WHERE state <> 'done'"):
        yield f"the path of conversation {talk} is {state}"
    last = {turn.conversation: turn for turn in found.turns}
    for mark, talk in found.queued:
        # A turn that its user began beside the queue leaves it held, and so does an empty purse.
        is_beside = "leaves_queue" in last[talk].begun_with or found.seen.budget is not None
        if last[talk].status == "COMPLETED" and not is_beside:
            yield f"message {mark} waits in conversation {talk}, though its last turn has completed"
    for (talk,) in found.rows(
        """SELECT conversation_id FROM tk_turns WHERE status IN ('RUNNING', 'WAITING')
        GROUP BY conversation_id HAVING count(*) > 1"""
    ):
        yield f"two turns are active in conversation {talk}"
    for (talk,) in found.rows(
        """SELECT conversation.id FROM tk_conversations AS conversation WHERE message_count <>
            (SELECT count(*) FROM tk_messages WHERE conversation_id = conversation.id AND on_path)"""
    ):
        yield f"conversation {talk} counts its messages wrongly"
    yield from _contradictions(found)


def _contradictions(found: Found) -> Iterator[str]:
    told: dict[str, set[str]] = {}
    for it in found.seen.answered:
        if it.status < 300:
            told.setdefault(it.request_id, set()).add(it.action)
        elif (
            it.code not in {"APPROVAL_ANSWERED", "APPROVAL_EXPIRED", "APPROVAL_NOT_FOUND"} and it.status < 500
        ):
            yield f"{it.user} couldn't answer {it.request_id} of turn {it.turn_id}: {it.status} {it.code}"
    for request, actions in told.items():
        if len(actions) > 1:
            yield f"request {request} took two answers: {sorted(actions)}"
