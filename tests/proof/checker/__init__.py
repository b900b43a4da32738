"""What must hold, whatever happened: from what users saw, the world counted and the database holds.

    messages.py    every acknowledged message once, and in its place
    turns.py       every turn one end, its log without a gap, one at a time
    followers.py   what each follower saw is the log, whatever node it moved to
    effects.py     no write handed over twice without consent
    money.py       money equals what the model was asked for; no budget was passed
    rest.py        nothing left over: no orphan, no lease, no reservation, no open request
    backups.py     a backup taken meanwhile has all that was acknowledged before

Every rule takes `Found` and yields sentences about what broke, with ids by which the trace tells the story.
"""

import sqlite3

from tests.proof.checker.backups import backups_are_whole
from tests.proof.checker.effects import no_effect_twice
from tests.proof.checker.followers import followers_saw_the_log
from tests.proof.checker.found import Found
from tests.proof.checker.messages import every_message_once, paths_are_lines
from tests.proof.checker.money import money_is_right, no_budget_was_passed
from tests.proof.checker.rest import nothing_is_left_over
from tests.proof.checker.turns import every_turn_has_one_end, logs_have_no_gap
from tests.proof.seen import Seen

RULES = (
    every_message_once,
    paths_are_lines,
    every_turn_has_one_end,
    logs_have_no_gap,
    followers_saw_the_log,
    no_effect_twice,
    money_is_right,
    no_budget_was_passed,
    nothing_is_left_over,
    backups_are_whole,
)


def check(seen: Seen, database: sqlite3.Connection) -> list[str]:
    """What broke, in sentences that begin with the name of the rule; nothing if all is well."""
    found = Found(seen, lambda query: database.execute(query).fetchall())
    problems = [f"{rule.__name__}: {it}" for rule in RULES for it in rule(found)]
    problems += [f"nobody_saw_anothers_data: {it}" for it in seen.leaks]
    problems += [f"no_response_is_a_surprise: {it}" for it in seen.unexpected]
    problems += [f"everything_comes_to_rest: {it}" for it in seen.left]
    return problems
