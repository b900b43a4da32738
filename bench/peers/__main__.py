"""Measures Threadkeep beside its peers and writes what was found, with a page about it."""

import argparse
import importlib
import inspect
import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.databases import sync_ms
from bench.peers.contender import ServerContender, StoreContender
from bench.peers.crashes import measure_crashes
from bench.peers.effort import FULL, QUICK, Effort
from bench.peers.environments import ENVIRONMENTS, ROOT, python_of, versions
from bench.peers.keeping import measure_stores
from bench.peers.page import write_pages
from bench.peers.processes import serve_model
from bench.peers.progress import say
from bench.peers.results import Result
from bench.peers.servers import SERVERS
from bench.peers.stores import STORES
from bench.peers.turns import measure_crowds, measure_rounds
from bench.results import Run

PUBLISHED = ROOT / "docs" / "performance" / "peers.json"
NAMES = tuple(dict.fromkeys((*SERVERS, *STORES)))
GROUPS = ("servers", "stores")


def server(name: str) -> ServerContender:
    """A server by the name of its file."""
    return importlib.import_module(f"bench.peers.servers.{name}").CONTENDER


def store(name: str) -> StoreContender:
    """A store by the name of its file."""
    return importlib.import_module(f"bench.peers.stores.{name}").CONTENDER()


def main(options: argparse.Namespace) -> None:
    """Everything that was asked for."""
    if options.page:
        write_pages(options.output or PUBLISHED)
        return
    effort = QUICK if options.quick else FULL
    if options.rounds:
        effort = replace(effort, rounds=options.rounds)
    whole = not options.quick and not options.only and not options.group
    output: Path = options.output or (PUBLISHED if whole else ENVIRONMENTS / "peers.json")
    servers: dict[str, Result] = {}
    stores: dict[str, Result] = {}
    with TemporaryDirectory(prefix="threadkeep-peers-") as name:
        folder = Path(name)
        about = _about(effort, folder)
        if options.group != "stores":
            servers = _measure_servers(options.only or SERVERS, effort, folder)
        if options.group != "servers":
            stores = _measure_stores(options.only or STORES, effort, folder)
    found = {
        **about,
        "rounds": max((result.rounds for result in servers.values()), default=0),
        "servers": {name: result.as_json() for name, result in servers.items()},
        "stores": {name: result.as_json() for name, result in stores.items()},
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write_pages(output)
    say(f"{output} and peers.md beside it")


def _measure_servers(names: Sequence[str], effort: Effort, folder: Path) -> dict[str, Result]:
    contenders = {name: server(name) for name in SERVERS if name in names}
    results = _prepared(contenders)
    able = {name: it for name, it in contenders.items() if not results[name].failures}
    with serve_model() as url:
        measure_crowds(able, results, effort, url, folder)
        measure_rounds(able, results, effort, url, folder)
        say("kill -9 in the middle of a turn, all at once")
        measure_crashes(able, results, url, folder)
    return results


def _measure_stores(names: Sequence[str], effort: Effort, folder: Path) -> dict[str, Result]:
    contenders = {name: store(name) for name in STORES if name in names}
    results = _prepared(contenders)
    able = {name: it for name, it in contenders.items() if not results[name].failures}
    measure_stores(able, results, effort, folder / "stores")
    return results


def _prepared(contenders: Mapping[str, ServerContender | StoreContender]) -> dict[str, Result]:
    """An empty result for each; whoever cannot be installed has failed already."""
    results: dict[str, Result] = {}
    for name, contender in contenders.items():
        module = inspect.getmodule(type(contender))
        result = results[name] = Result(contender.title, " ".join((inspect.getdoc(module) or "").split()))
        try:
            result.versions = versions(python_of(contender.lock), contender.packages)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            result.fail("installing", error)
    return results


def _about(effort: Effort, folder: Path) -> dict[str, object]:
    return {
        "run": msgspec.to_builtins(Run.now(is_quick=effort.pieces < FULL.pieces)),
        "processor": _processor(Path("/proc/cpuinfo").read_text().splitlines()),
        "sync ms": sync_ms(folder),
        "store rounds": effort.store_rounds,
        "pieces a turn": effort.pieces,
        "pieces of a turn alone": effort.alone_pieces,
    }


def _processor(lines: Iterable[str]) -> str:
    """What the machine calls its processor, where it says so."""
    named = (line.partition(":") for line in lines)
    fields = {name.strip(): value.strip() for name, _, value in named}
    return fields.get("model name") or f"CPU part {fields.get('CPU part', 'unknown')}"


def _end(*_: object) -> None:
    """Ends everything that was started, too."""
    sys.exit("ended")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser("python -m bench.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes instead of twenty")
    parser.add_argument("--only", type=_names, help=f"some contenders, with commas: {', '.join(NAMES)}")
    parser.add_argument("--group", choices=GROUPS, help="only servers or only stores")
    parser.add_argument("--rounds", type=int, help="rounds of the servers")
    parser.add_argument("--output", type=Path, help="where the results go; the page lies beside them")
    parser.add_argument("--page", action="store_true", help="measure nothing: render the results again")
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(NAMES):
        raise argparse.ArgumentTypeError(f"no contender is called {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    main(parse(sys.argv[1:]))
