"""Every statement uses an index, or says why not; the lists of their plans are up to date."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import psycopg

from tests.conftest import TEMPLATE
from tests.postgres import Postgres
from tests.storage.statements import (
    BUILT,
    POSTGRES,
    SQLITE,
    Scan,
    builders,
    postgres_listing,
    postgres_plans,
    postgres_scans,
    sqlite_listing,
    sqlite_plans,
    sqlite_scans,
    statements,
)

AGAIN = "After a change that you meant to make, run python -m tests.storage.statements"

FEW = "there are few of them"
RARE = "somebody deletes or joins a user, which is rare and done once"
PARTIAL = "its index holds only these rows"
REASONS: Mapping[Scan, str] = {
    Scan("agents._GET_DEFAULT", "tk_agents"): PARTIAL,
    Scan("agents._WITH_COMMANDS", "tk_agents"): "asked once, at the start",
    Scan("briefings.UNREAD", "tk_agents"): "deleted agents count too, and no index has these by owner",
    Scan("documents.chunk_index.WAITING", "tk_documents"): "finds what a stopped node left; nobody waits",
    Scan("database.migrate._APPLIED", "tk_migrations"): FEW,
    Scan("gateways.ALL_GATEWAYS", "tk_gateways"): FEW,
    Scan("gateways._COUNT", "tk_gateways"): FEW,
    Scan("gateways._NAMES_WITH_KEY", "tk_gateways"): FEW,
    Scan("imports.reassignment._MOVE_AGENTS", "tk_agents"): RARE,
    Scan("inspection._AGENTS", "tk_agents"): "asked by the doctor",
    Scan("inspection._KEYS", "tk_keys"): "asked by the doctor",
    Scan("jobs._RELEASE", "tk_jobs"): FEW,
    Scan("jobs._RELEASE_ALL", "tk_jobs"): FEW,
    Scan("path_moves._FIND_SETTLING", "tk_path_moves"): FEW,
    Scan("purging.HOLD_LEFT", "tk_conversations"): PARTIAL,
    Scan("purging.LET_ALL_GO", "tk_conversations"): PARTIAL,
    Scan("spending.charges._CHARGE", "tk_reservations"): "stops at the first row",
    Scan("spending.ledger._COUNT_RESERVATIONS", "tk_reservations"): FEW,
    Scan("spending.ledger._FORGET_FORMER", "tk_former_spending"): "the users who were deleted this month",
    Scan("code.programs._ALL", "tk_programs"): FEW,
    Scan("code.programs._FORGET", "tk_programs"): FEW,
    Scan("code.programs._WORKERS", "tk_programs"): FEW,
    Scan("running.active_turns._PAGE", "tk_turns"): PARTIAL,
    Scan("sign_in.attempts._SWEEP", "tk_sign_in_attempts"): FEW,
    Scan("sign_in.grants._END_UNCHECKED", "tk_sessions"): "once an hour; nobody waits",
    Scan("sign_in.invitations._HAS_ADMIN", "tk_invitations"): FEW,
    Scan("sign_in.invitations._HAS_ADMIN", "tk_users"): "asked by a command",
    Scan("sign_in.invitations._OPEN", "tk_invitations"): FEW,
    Scan("sign_in.invitations._SWEEP", "tk_invitations"): FEW,
    Scan("sign_in.sessions._SWEEP", "tk_sessions"): "once an hour; nobody waits",
    Scan("users._WITHDRAW_INVITATIONS", "tk_invitations"): FEW,
    Scan("users._AGENTS", "tk_agents"): RARE,
    Scan("users._DELETE_AGENTS", "tk_agents"): RARE,
    Scan("users._DELETE_OWNERLESS_AGENTS", "tk_agents"): PARTIAL,
    Scan("users._EMPTY_OWNERLESS_AGENTS", "tk_agents"): PARTIAL,
    Scan("users._EMPTY_SHARED_AGENTS", "tk_agents"): RARE,
    Scan("users._HALF_DELETED", "tk_users"): PARTIAL,
    Scan("users._OWN_AGENTS", "tk_agents"): RARE,
}
"""Why these read a whole table."""


def test_functions_that_write_statements_are_listed_with_what_they_write():
    assert builders() == set(BUILT)


def test_no_statement_depends_on_the_order_of_columns():
    """They differ between a database that was migrated and a new one."""
    careless = re.compile(r"SELECT \*|INSERT INTO tk_\w+ +(?:VALUES|SELECT)")
    found = {name for name, it in statements().items() if careless.search(it.sqlite + it.postgres)}
    assert {name for name in found if "SELECT * FROM (" not in statements()[name].sqlite} == set()


def test_sqlite_scans_no_table_without_a_reason(sqlite_template: Path):
    with closing(sqlite3.connect(f"{sqlite_template.as_uri()}?mode=ro", uri=True)) as connection:
        plans = sqlite_plans(connection)
    assert sqlite_scans(plans) == set(REASONS)
    compare(sqlite_listing(plans), SQLITE)


def test_postgres_scans_no_table_without_a_reason(postgres: Postgres):
    with psycopg.connect(postgres.create_database(template=TEMPLATE)) as connection:
        plans = postgres_plans(connection)
        listing = postgres_listing(connection.info.server_version, plans)
    assert postgres_scans(plans) <= set(REASONS)
    compare(listing, POSTGRES)


def compare(listing: str, file: Path) -> None:
    """The file has every statement, and its plan if it was written with the same version of the database."""
    written = file.read_text(encoding="utf-8")
    if listing.splitlines()[0] == written.splitlines()[0]:
        assert listing == written, AGAIN
    else:
        names, written_names = (re.findall(r"^\S.*", it, re.M)[1:] for it in (listing, written))
        assert names == written_names, AGAIN
