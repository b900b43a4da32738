"""A few seeds in every run; `python -m tests.proof simulate` runs more."""

import pytest

from tests.proof.shrinking import shrunk
from tests.proof.simulation.run import run_story
from tests.proof.story import AtCommit, Send, Stop, Story, draw

FOUND = (346,)
"""Seeds that have found a fault of the product."""


@pytest.mark.parametrize("seed", [*range(8), *FOUND])
def test_nothing_is_lost(seed: int):
    outcome = run_story(draw(seed))
    assert not outcome.problems, f"python -m tests.proof simulate --seed {seed}\n{outcome.problems}"


@pytest.mark.parametrize("seed", [6, 19])
def test_a_seed_is_the_same_run_every_time(seed: int):
    first, second = run_story(draw(seed)), run_story(draw(seed))
    assert [str(it) for it in first.trace.all] == [str(it) for it in second.trace.all]
    assert first.trace.hash == second.trace.hash


def test_a_failing_story_becomes_as_short_as_it_can_be():
    needed = AtCommit("SqlTurns.end", 1, "lost after")
    asked = Send(0.1, "a", 0, "say")
    story = Story(
        seed=1,
        nodes=4,
        acts=[asked, Send(0.2, "b", 0, "say"), Stop(3, "a", 0)],
        faults=[AtCommit("SqlTurns.begin", 1, "late"), needed],
    )
    short = shrunk(story, lambda it: needed in it.faults and asked in it.acts)
    assert (short.acts, short.faults, short.nodes) == ([asked], [needed], 2)
