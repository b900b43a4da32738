"""`threadkeep doctor`: prints the findings, and what to do."""

import argparse
import asyncio
import logging
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence

import msgspec

from threadkeep.cli.commands import runs
from threadkeep.cli.privacy import keep_secrets_private
from threadkeep.doctor import examine
from threadkeep.doctor.finding import Finding
from threadkeep.doctor.settings import refused_settings
from threadkeep.domain.errors import SettingsError
from threadkeep.settings import Settings
from threadkeep.version import __version__


def add_doctor(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    runs(command, doctor, reports_settings=True, report_refused=report_refused)
    command.add_argument("--json", action="store_true", help="print the findings as JSON, for programs")
    command.add_argument(
        "--internet",
        action="store_true",
        help="also check what matters before you expose the server to the internet",
    )


def doctor(settings: Settings, given: argparse.Namespace) -> int:
    """Runs all checks."""
    logging.getLogger().addHandler(logging.NullHandler())  # the findings have everything that matters
    return _report(asyncio.run(_examined(settings, internet=given.internet)), given)


def report_refused(error: SettingsError, given: argparse.Namespace) -> int:
    """Reports invalid settings, without which nothing else can be checked."""
    return _report([refused_settings(error)], given)


async def _examined(settings: Settings, *, internet: bool) -> list[Finding]:
    environment = dict(os.environ)
    keep_secrets_private(settings)  # it runs MCP servers' programs
    return [finding async for finding in examine(settings, environment, internet=internet)]


def _report(findings: Sequence[Finding], given: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if there is a problem."""
    counts = Counter(finding.verdict for finding in findings)
    if given.json:
        report = {"version": __version__, "ok": not counts["problem"], "findings": findings}
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
        return min(counts["problem"], 1)
    print(f"threadkeep {__version__}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
    for finding in findings:
        print(f"{finding.verdict:8} {finding.check}: {finding.message}")
        if finding.advice and finding.verdict != "ok":
            print(f"{'':8} → {finding.advice}")
    print(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['problem']} problems")
    return min(counts["problem"], 1)
