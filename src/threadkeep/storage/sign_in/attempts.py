"""Sign-ins with a provider that have begun, in the database: any node finishes them."""

from threadkeep.domain.sign_in.identity import Attempt
from threadkeep.storage.database.connector import Database, Statement

_COLUMNS = "provider, browser_hash, verifier, nonce, next, expires_at"
_ADD = Statement(
    f"""INSERT INTO tk_sign_in_attempts (state_hash, {_COLUMNS})
    VALUES (:state_hash, :provider, :browser_hash, :verifier, :nonce, :next, :expires_at)"""
)
# Whoever takes it, and whether they may or not: nobody can use it again.
_TAKE = Statement(f"DELETE FROM tk_sign_in_attempts WHERE state_hash = :state_hash RETURNING {_COLUMNS}")
_SWEEP = Statement("DELETE FROM tk_sign_in_attempts WHERE expires_at <= :now")


class SqlSignInAttempts:
    """Attempts, each found by the hash of its state."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, state_hash: str, attempt: Attempt) -> None:
        """Stores a new one."""
        values = {name: getattr(attempt, name) for name in Attempt.__slots__}
        await self._database.execute(_ADD(state_hash=state_hash, **values))

    async def take(self, state_hash: str) -> Attempt | None:
        """The attempt with this state, which is used up; None if there is none."""
        rows = await self._database.execute(_TAKE(state_hash=state_hash))
        if not rows:
            return None
        provider, browser_hash, verifier, nonce, next_, expires_at = rows[0]
        return Attempt(
            provider=provider,
            browser_hash=browser_hash,
            verifier=verifier,
            nonce=nonce,
            next=next_,
            expires_at=expires_at,
        )

    async def sweep(self, now: int) -> None:
        """Forgets those that took too long."""
        await self._database.execute(_SWEEP(now=now))
