"""Draws where a server's time goes: `python -m bench.flame piece` writes docs/performance/flame-piece-after.svg.

py-spy (`pip install py-spy`) samples the threads that run; from the outside, so that another checkout can be
drawn as well: `python -m bench.flame piece --tree ../before --label before`.
"""

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from tests.postgres import free_port

from bench import branches, context
from bench.begin import conversations_on
from bench.drawing import Drawing, fitted
from bench.servers import TREE, checkout_environment, family
from bench.sse import Streams
from bench.turns import ask, serve_with_speaker

FOLDER = TREE / "docs" / "performance"
SECONDS, RATE = 10, 400
COLD_STARTS, COLD_RATE = 5, 1000
LEAST_SHARE = 0.005
WIDTH, ROW, MARGIN = 1000, 18, 12

Stacks = Counter[tuple[str, ...]]
"""How often each stack was seen, its frames from the outermost to the innermost as `name (file:line)`."""


# What is watched: each of these yields the stacks that were seen while it ran.


def piece(tree: Path) -> Stacks:
    """50 turns of 20 pieces a second"""
    with conversations_on("sqlite", 50) as (url, conversations), serve_with_speaker(url, tree=tree) as server:
        streams = Streams(server.port)
        streams.open(ask(it.id, 20 * (SECONDS + 4), 20) for it in conversations)
        streams.read_for(2)
        with _reading(streams):
            return _watch(server.pid, tree)


def begin(tree: Path) -> Stacks:
    """turns of one piece, ten at once"""
    with (
        conversations_on("sqlite", 2_000) as (url, conversations),
        serve_with_speaker(url, tree=tree) as server,
        _again(lambda: _run_turns(server.port, [next(left) for _ in range(10)])),
    ):
        left = iter(conversations)
        return _watch(server.pid, tree)
