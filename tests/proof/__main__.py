"""`python -m tests.proof simulate --seeds 100 [--seed N]`, `python -m tests.proof mutants [NAME]`."""

import argparse
import re
import sys
import time
from collections import Counter

from tests.proof.mutants import MUTANTS
from tests.proof.shrinking import shrunk
from tests.proof.simulation.run import Outcome, run_story
from tests.proof.story import draw

MOST_TOLD = 60


def main() -> int:
    """Runs a command; 1 if something broke that shouldn't, or didn't that should."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    simulating = commands.add_parser("simulate", help="run stories on virtual time")
    simulating.add_argument("--seeds", type=int, default=100, help="how many")
    simulating.add_argument("--first", type=int, default=0, help="the first of them")
    simulating.add_argument("--seed", type=int, help="one only, told in full")
    breaking = commands.add_parser("mutants", help="break the product on purpose")
    breaking.add_argument("name", nargs="?", default="", help="only those whose names contain this")
    given = parser.parse_args()
    if given.command == "mutants":
        return _mutants(given.name)
    return _tell(given.seed) if given.seed is not None else _simulate(given.first, given.seeds)


def _simulate(first: int, seeds: int) -> int:
    begun, cpu, turns, counts, failed = time.monotonic(), time.process_time(), 0, Counter[str](), list[int]()
    for seed in range(first, first + seeds):
        outcome = run_story(draw(seed))
        turns += outcome.turns
        counts += outcome.trace.counts
        if outcome.failed:
            failed.append(seed)
            print(f"seed {seed}: {outcome.problems[0]}", flush=True)
    took = time.process_time() - cpu
    print(f"{seeds} seeds, {turns} turns, {sum(counts.values())} moments reached, {len(failed)} failed;")
    print(f"{time.monotonic() - begun:.0f} s, {turns / took:.1f} turns a second of one core")
    for name, count in sorted(counts.items()):
        print(f"    {count:6}  {name}")
    for seed in failed:
        print(f"python -m tests.proof simulate --seed {seed}")
    return 1 if failed else 0


def _tell(seed: int) -> int:
    outcome = run_story(draw(seed))
    if not outcome.failed:
        print(outcome.story)
        print(f"All is well: {outcome.turns} turns, trace {outcome.trace.hash}.")
        return 0
    rule = _rule(outcome)
    outcome = run_story(shrunk(outcome.story, lambda it: rule in map(_rule_of, run_story(it).problems)))
    explain(outcome)
    return 1


def explain(outcome: Outcome) -> None:
    """What broke, the shortest story in which it does, and what happened in it."""
    print(outcome.story)
    for problem in outcome.problems:
        print(f"BROKEN {problem}")
    names = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}|\\b[a-c]-\\d", " ".join(outcome.problems))
    told = outcome.trace.all if len(outcome.trace.all) < 400 else outcome.trace.about(names)
    for happened in told[-MOST_TOLD:]:
        print(f"  {happened}")
    print(f"trace {outcome.trace.hash}")


def _rule(outcome: Outcome) -> str:
    return _rule_of(outcome.problems[0])


def _rule_of(problem: str) -> str:
    return problem.partition(":")[0]


def _mutants(name: str) -> int:
    missed = 0
    for mutant in MUTANTS:
        if name not in mutant.name:
            continue
        begun = time.process_time()
        with mutant.at_work():
            outcome = run_story(mutant.story)
        took = time.process_time() - begun
        is_found = mutant.rule in map(_rule_of, outcome.problems)
        missed += not is_found
        verdict = "found" if is_found else "MISSED"
        print(f"{verdict:6}  {took:4.1f} s  {mutant.name}  {outcome.problems[:1]}"[:220], flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
