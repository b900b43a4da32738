"""The checker finds faults that are put into the product on purpose, each by the rule that is about it."""

import pytest

from tests.proof.mutants import MUTANTS, Mutant
from tests.proof.simulation.run import run_story


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda it: it.name)
def test_the_checker_finds(mutant: Mutant):
    assert not run_story(mutant.story).problems  # it is the mutant that breaks it
    with mutant.at_work():
        problems = run_story(mutant.story).problems
    assert mutant.rule in {it.partition(":")[0] for it in problems}
