"""API keys: users make and revoke them, programs sign in with them."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from threadkeep.clock import Clock, monotonic
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, KeyNotFound, LimitNotAllowed, StorageError, Unauthenticated
from threadkeep.domain.ids import KeyId, UserId, is_uuid, new_uuid
from threadkeep.domain.key import MOST_KEYS, Key, KeyDraft, hash_of, new_key_value, prefix_of
from threadkeep.domain.sign_in.acting import acted_for, check_realm, check_unnamed
from threadkeep.domain.user import User, user_of_key
from threadkeep.services.agents import Agents
from threadkeep.storage.store import Store

K = TypeVar("K")
V = TypeVar("V")

KNOWN_FOR_S = 2.0
"""How long a node relies on what it has read of a key or of a user's role. With the pause between two checks
of an open stream, a key that another node revokes ends its streams within 5 seconds."""
MOST_KNOWN = 4096
USE_NOTED_EVERY_MS = 60_000


class Keys:
    """The use cases of keys."""

    def __init__(
        self,
        store: Store,
        agents: Agents,
        clock: Clock,
        monotonic: Callable[[], float] = monotonic,
        *,
        act_as_anyone: bool = False,
        taken_realms: Collection[str] = (),
    ) -> None:
        """`act_as_anyone` says whether keys may act for users of no realm; `taken_realms` are names that no
        realm may have.
        """
        self._act_as_anyone = act_as_anyone
        self._taken_realms = taken_realms
        self._store = store
        self._agents = agents
        self._clock = clock
        self._monotonic = monotonic
        self._known: OrderedDict[str, tuple[Key, float]] = OrderedDict()
        """Keys by their hashes, and until when they count."""
        self._without_admin: OrderedDict[UserId, float] = OrderedDict()
        """Users whose keys don't have the admin role, and until when that counts."""

    async def create(self, user: User, draft: KeyDraft) -> tuple[Key, str]:
        """A new key of the user, and its value, which nobody can read again.

        What a key makes can do no more than it, and goes with it.
        """
        if (parent := user.key) is not None:
            draft = parent.limited(draft)
        if draft.act_as is not None:
            if not user.is_admin:
                raise Forbidden("Only an admin can make a key that acts for an application's users.")
            check_realm(draft.act_as, anyone=self._act_as_anyone, taken=self._taken_realms)
        for agent_id in draft.agents or ():  # it acts without the admin role
            await self._agents.get(User(user.id, key=parent), agent_id)
        now, value = self._clock(), new_key_value()
        key = Key(
            id=KeyId(new_uuid()),
            user_id=user.id,
            name=draft.name,
            prefix=prefix_of(value),
            scopes=draft.scopes,
            agents=draft.agents,
            is_admin=user.is_admin,
            may_run_programs=user.may_run_programs,
            budget_month=draft.budget_month,
            created_at=now,
            expires_at=draft.expiry(now),
            parent_id=parent and parent.id,
            payer_id=parent.paid_by if parent and parent.budget_month else None,
            act_as=draft.act_as,
            may_delete=draft.may_delete,
        )
        entry = self._entry(user, "create_key", _details(key))
        if not await self._store.keys.add(key, hash_of(value), entry, most=MOST_KEYS):
            raise LimitNotAllowed(
                f"You have {MOST_KEYS} keys, the most allowed. Revoke one that you no longer use.",
                details={"limit": "keys", "most": MOST_KEYS},
            )
        self._without_admin.pop(user.id, None)
        return key, value

    async def list(self, user: User) -> Sequence[Key]:
        """The user's keys, newest first; a key that is limited to agents sees only itself."""
        keys = await self._store.keys.of_user(user.id)
        return (
            keys if user.key is None or user.agents is None else [it for it in keys if it.id == user.key.id]
        )

    async def revoke(self, user: User, key_id: str) -> None:
        """Deletes one of the user's keys, and those that it has made.

        What they have open ends within seconds, on every node.
        """
        id_ = KeyId(key_id.lower())
        entry = self._entry(user, "revoke_key", {"keyId": id_})
        if not is_uuid(key_id) or not await self._store.keys.remove(user.id, id_, entry):
            raise KeyNotFound
        self.forget_user(user.id)

    async def sign_in(self, value: str, named: Sequence[str] = ()) -> User:
        """The user whom a key signs in; Unauthenticated if it is unknown, revoked or expired.

        `named` is what the request says of the user that it asks for.
        """
        key = await self.find(value)
        now = self._clock()
        if key.last_used_at is None or now - key.last_used_at >= USE_NOTED_EVERY_MS:
            with suppress(StorageError):  # the request itself reports the outage
                await self._store.keys.note_use(key.id, now)
            key = replace(key, last_used_at=now)
            key_hash = hash_of(value)
            if (known := self._known.get(key_hash)) is not None:
                self._known[key_hash] = key, known[1]
        return self._user_of(key, named)

    async def find_user(self, value: str, named: Sequence[str] = ()) -> User:
        """The same, without being a use of the key."""
        return self._user_of(await self.find(value), named)

    def _user_of(self, key: Key, named: Sequence[str]) -> User:
        if key.act_as is None:
            check_unnamed(named)
            return user_of_key(key)
        if not key.act_as and not self._act_as_anyone:
            raise Forbidden(
                "This API key acts for every user, which the operator no longer allows; "
                "THREADKEEP_ACT_AS_ANYONE=true would."
            )
        return User(acted_for(key.act_as, named), may_run_programs=False, key=key)

    async def find(self, value: str) -> Key:
        """The valid key with a value; Unauthenticated if there is none. That isn't a use of it."""
        key_hash = hash_of(value)
        key, until = self._known.get(key_hash, (None, 0.0))
        if key is None or self._monotonic() >= until:
            self._known.pop(key_hash, None)
            asked_at = self._monotonic()
            if (key := await self._store.keys.find(key_hash)) is None:
                raise Unauthenticated("This API key doesn't exist, or it was revoked.")
            remember(self._known, key_hash, (key, asked_at + KNOWN_FOR_S))
        key.check_valid(self._clock())
        return key

    async def follow_role(self, user: User) -> None:
        """Takes the admin role from the keys of a user who signs in without it."""
        if user.is_admin:
            self._without_admin.pop(user.id, None)
            return
        if self._monotonic() < self._without_admin.get(user.id, 0.0):
            return
        asked_at = self._monotonic()
        if await self._store.keys.has_admin_keys(user.id):
            await self._store.keys.take_admin_role(user.id)
            self.forget_user(user.id)
        remember(self._without_admin, user.id, asked_at + KNOWN_FOR_S)

    def forget_user(self, user_id: UserId) -> None:
        """Reads the user's keys again before they sign in."""
        for key_hash in [key_hash for key_hash, (key, _) in self._known.items() if key.user_id == user_id]:
            del self._known[key_hash]

    def _entry(self, user: User, action: str, details: dict[str, object]) -> AuditEntry:
        return AuditEntry(new_uuid(), self._clock(), user.id, action, None, details)


def _details(key: Key) -> dict[str, object]:
    parent = {"parentId": key.parent_id} if key.parent_id else {}
    acting = {"actAs": {"realm": key.act_as}, "mayDelete": key.may_delete} if key.acts else {}
    return {"keyId": key.id, "scopes": list(key.scopes), **parent, **acting}


def remember(known: OrderedDict[K, V], name: K, value: V) -> None:
    """Keeps what was read last, and forgets the oldest."""
    known[name] = value
    known.move_to_end(name)
    if len(known) > MOST_KNOWN:
        known.popitem(last=False)
