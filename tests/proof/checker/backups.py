"""Backups: taken while everything goes on, and yet whole."""

from collections.abc import Iterator

from tests.proof.checker.found import Found


def backups_are_whole(found: Found) -> Iterator[str]:
    """A backup refers to nothing that it lacks, and has every message that was acknowledged before it."""
    for backup in found.seen.backups:
        for table, missing in backup.dangling:
            yield f"the backup of {backup.at:.3f} s has rows of {table} without their {missing}"
        for sent in found.seen.sent:
            is_due = sent.acknowledged and sent.acknowledged_at <= backup.at
            if is_due and not any(f"[m:{sent.mark}]" in text for text in backup.texts):
                yield f"the backup of {backup.at:.3f} s lacks message {sent.mark}"
