"""Sign-in providers: what the use cases need of them, whatever they speak."""

from typing import Protocol

from threadkeep.domain.secret import Secret
from threadkeep.domain.sign_in.identity import Admission, Identified, ProviderAnswer


class IdentityProvider(Protocol):
    """One provider. Its methods raise SignInProblem."""

    @property
    def admission(self) -> Admission:
        """Who of its people may come in."""
        ...

    async def sign_in_url(self, *, state: str, verifier: str, nonce: str) -> str:
        """Where a browser signs in."""
        ...

    async def identify(self, answer: ProviderAnswer, *, verifier: str, nonce: str) -> Identified:
        """Who has signed in, from what the browser brought back."""
        ...

    async def refresh(self, token: Secret, subject: str) -> Identified:
        """Who a user is now; GrantRefused if the provider doesn't take the token, and Unconfirmed if it does
        without saying who that is.
        """
        ...

    async def close(self) -> None:
        """Closes its connections."""
        ...
