"""Invitations: links that sign people in, once, where no provider does."""

from collections.abc import Sequence
from dataclasses import dataclass

from threadkeep.clock import Clock
from threadkeep.domain.agent import AuditEntry
from threadkeep.domain.errors import Forbidden, InvalidRequest, InvitationNotFound, OtherUserSignedIn
from threadkeep.domain.ids import InvitationId, UserId, is_uuid, new_uuid
from threadkeep.domain.sign_in.session import (
    DAY_MS,
    INVITATION,
    INVITATION_S,
    OWN_LINK_S,
    Invitation,
    SessionStarted,
    SignInRules,
    invited_id,
    new_token,
    required_hash,
    token_hash,
)
from threadkeep.domain.user import LOCAL, User, UserRole
from threadkeep.services.sign_in.sessions import Sessions, new_session
from threadkeep.storage.store import Store

REMEMBERED_MS = 30 * DAY_MS
"""For so long after its end, an invitation still says why it can't be used."""


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """An invitation, and the link that nobody can read again."""

    invitation: Invitation
    url: str


class Invitations:
    """The use cases of invitations."""

    def __init__(self, store: Store, sessions: Sessions, rules: SignInRules, clock: Clock) -> None:
        self._store = store
        self._sessions = sessions
        self._rules = rules
        self._clock = clock

    async def create(
        self, user: User | None, name: str, role: UserRole, ttl_s: int = INVITATION_S
    ) -> NewInvitation:
        """Invites somebody by a name. None is the operator, on the command line."""
        if user is not None:
            _check_admin(user)
        made, hashed, entry = self._new(user, name, role, ttl_s)
        if made.invitation.is_own:
            raise InvalidRequest(
                "This is you. Under Settings, you can make a link for another browser of yours.",
                param="user",
            )
        await self._store.invitations.add(made.invitation, hashed, entry)
        return made

    async def create_own(self, user: User) -> NewInvitation:
        """Makes a link with which the user signs in with another browser, too; for who came by invitation.

        Only their session can do it: neither a key nor a token may make a way in that lasts longer.
        """
        if user.session_id is None:
            raise Forbidden("Only a browser that is signed in can make a link for another one.")
        made, hashed, entry = self._new(user, user.id, user.role, OWN_LINK_S)
        await self._store.invitations.add_own(made.invitation, hashed, entry, user.session_id)
        return made

    async def create_first(self, name: str, ttl_s: int = INVITATION_S) -> NewInvitation | None:
        """Invites the first admin; None once one has signed in, and while another can."""
        made, hashed, entry = self._new(None, name, UserRole.ADMIN, ttl_s)
        return made if await self._store.invitations.add_first(made.invitation, hashed, entry) else None

    def _new(
        self, user: User | None, name: str, role: UserRole, ttl_s: int
    ) -> tuple[NewInvitation, str, AuditEntry]:
        """An invitation, the hash of its token and its entry in the audit."""
        public_url = self._rules.public_url
        if not self._rules.invitations or public_url is None:
            raise Forbidden("The operator hasn't turned on invitations: THREADKEEP_INVITATIONS=on.")
        now, token = self._clock(), new_token()
        invitation = Invitation(
            id=InvitationId(new_uuid()),
            user_id=invited_id(name),
            role=role,
            invited_by=user.id if user else None,
            created_at=now,
            expires_at=now + ttl_s * 1000,
        )
        entry = self._entry(user.id if user else LOCAL, "create_invitation", invitation)
        made = NewInvitation(invitation, f"{public_url.text}/#/invitation/{token}")
        return made, required_hash(token), entry

    async def find(self, token: str) -> Invitation:
        """The invitation in a link, if it can still be accepted. That changes nothing."""
        return await self._store.invitations.find(self._hash(token), self._clock())

    async def accept(
        self, token: str, device: str, here: User | None, *, switches: bool
    ) -> tuple[Invitation, SessionStarted]:
        """Signs in whom an invitation is for, and ends their other sessions unless they made it themselves.

        `here` is who is signed in in this browser: somebody else must agree to switch, and is signed out.
        """
        found, now = await self.find(token), self._clock()
        if here is not None and here.id != found.user_id and not switches:
            raise OtherUserSignedIn(
                f"This browser is signed in as {here.id!r}. Sign out first, or agree to switch to "
                f"{found.user_id!r}.",
                details={"userId": here.id},
            )
        session, session_token = new_session(found.user_id, INVITATION, device, now)
        entry = self._entry(found.user_id, "accept_invitation", found)
        accepted = await self._store.invitations.accept(
            self._hash(token), session, required_hash(session_token), entry
        )
        self._sessions.forget_user(found.user_id)
        if here is not None and here.id != found.user_id and here.session_id is not None:
            await self._sessions.end(here, here.session_id)
        return accepted, SessionStarted(session, session_token)

    async def list(self, user: User) -> Sequence[Invitation]:
        """Those that nobody has accepted yet, newest first; for admins."""
        _check_admin(user)
        return await self._store.invitations.open_ones(self._clock())

    async def withdraw(self, user: User, invitation_id: str) -> None:
        """Makes an unused invitation's link useless; for admins."""
        _check_admin(user)
        id_ = InvitationId(invitation_id.lower())
        entry = AuditEntry(
            new_uuid(), self._clock(), user.id, "withdraw_invitation", None, {"invitationId": id_}
        )
        if not is_uuid(invitation_id) or not await self._store.invitations.remove(id_, entry):
            raise InvitationNotFound

    async def sweep(self) -> None:
        """Forgets invitations that ended long ago."""
        await self._store.invitations.sweep(self._clock() - REMEMBERED_MS)

    def _hash(self, token: str) -> str:
        hashed = token_hash(token) if self._rules.invitations else None
        if hashed is None:
            raise InvitationNotFound(
                "This isn't an invitation of this server. Check that the link is complete."
            )
        return hashed

    def _entry(self, actor_id: UserId, action: str, invitation: Invitation) -> AuditEntry:
        details: dict[str, object] = {
            "invitationId": invitation.id,
            "userId": invitation.user_id,
            "role": invitation.role.value,
        }
        if invitation.is_own:
            details["forOtherBrowser"] = True
        return AuditEntry(new_uuid(), self._clock(), actor_id, action, None, details)


def _check_admin(user: User) -> None:
    if not user.is_admin:
        raise Forbidden("Only an admin can invite people.")
