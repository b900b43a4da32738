"""The benchmark beside others: its files fit together. It measures nothing here."""

import importlib
import json
import re
from pathlib import Path

import pytest
from bench.peers.__main__ import PUBLISHED
from bench.peers.contender import ServerContender, StoreContender, asked_pace
from bench.peers.environments import LOCKS
from bench.peers.page import make_pages
from bench.peers.servers import SERVERS
from bench.peers.serving import ONE_PIECE
from bench.peers.stores import STORES

FILES = [*(f"servers.{name}" for name in SERVERS), *(f"stores.{name}" for name in STORES)]
LOCKED = sorted(it.stem for it in LOCKS.glob("*.lock"))


def contender(file: str) -> ServerContender | StoreContender:
    named = importlib.import_module(f"bench.peers.{file}").CONTENDER
    return named() if file.startswith("stores.") else named


def test_published_page_shows_the_published_results():
    for name, text in make_pages(json.loads(PUBLISHED.read_text())).items():
        assert (PUBLISHED.parent / name).read_text() == text, f"{name}: python -m bench.peers --page"


@pytest.mark.parametrize("folder", ["servers", "stores"])
def test_every_file_is_a_contender(folder: str):
    package = importlib.import_module(f"bench.peers.{folder}")
    files = {it.stem for it in Path(str(package.__file__)).parent.glob("*.py")} - {"__init__"}
    assert files == {name.partition(".")[2] for name in FILES if name.startswith(folder)}


@pytest.mark.parametrize("file", FILES)
def test_contender_says_how_it_is_run(file: str):
    it = contender(file)  # an abstract method that is missing fails here
    assert it.title
    assert it.lock is None or (
        it.lock in LOCKED and "Best case" in str(importlib.import_module(f"bench.peers.{file}").__doc__)
    )
    if isinstance(it, StoreContender):
        assert it.lists == (type(it).list_conversations is not StoreContender.list_conversations)


@pytest.mark.parametrize("lock", LOCKED)
def test_lock_file_names_hashes_and_no_host(lock: str):
    text = (LOCKS / f"{lock}.lock").read_text()
    assert (LOCKS / f"{lock}.in").exists()
    assert "://" not in text
    requirements = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
    assert all("==" in it and "--hash=sha256:" in it for it in requirements)


def test_question_says_how_the_model_replies():
    assert asked_pace(f"…{ONE_PIECE.question}…".encode()) == ONE_PIECE
