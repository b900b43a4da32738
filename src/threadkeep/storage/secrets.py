"""Secrets at rest: encrypted with a key that is not in the database."""

import base64
import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from threadkeep.domain.data_folder import make_data_folder
from threadkeep.domain.errors import SecretKeyRequired, SecretUnreadable, StorageRefused
from threadkeep.domain.secret import Secret
from threadkeep.storage.database.connector import Statement

# The key that the stored secrets need; no row while no secret is stored.
SECRET_KEY = Statement("SELECT value FROM tk_meta WHERE name = 'secret_key'")
# Does not write the row again if the key is the same, as it is at nearly every change of an agent.
REMEMBER_KEY = Statement(
    """INSERT INTO tk_meta (name, value) VALUES ('secret_key', :value)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE tk_meta.value <> excluded.value"""
)


class SecretBox:
    """Encrypts secrets with the first of its keys and decrypts them with any.

    The key file, if given, holds one more key; without any key, sealing the first secret creates it. A sealed
    secret is `key.token`, so that it names the key it needs.
    """

    def __init__(self, keys: Sequence[str] = (), key_file: Path | None = None) -> None:
        self._key_file = key_file
        self._use([*keys, *_read(key_file)])

    @property
    def sealing_key(self) -> str | None:
        """The name of the encrypting key; None while there is none."""
        return next(iter(self._keys), None)

    @property
    def can_seal(self) -> bool:
        """Whether there is a key, or one can be created."""
        return bool(self._keys) or self._key_file is not None

    def seal(self, secret: Secret) -> str:
        """A secret as stored. Returned unchanged if the first key sealed it or its key is missing."""
        if isinstance(secret, SealedSecret) and (
            secret.is_sealed_by(self.sealing_key) or not secret.is_readable
        ):
            return secret.token
        if not self._keys:
            self.make_key()
        name, key = next(iter(self._keys.items()))
        return f"{name}.{key.encrypt(secret.reveal().encode()).decode()}"

    def kept(self, token: str) -> Secret:
        """A sealed secret, decrypted only when needed."""
        return SealedSecret(token, self)

    def open(self, token: str) -> str:
        """The decrypted secret."""
        name, _, sealed = token.partition(".")
        try:
            return self._keys[name].decrypt(sealed.encode()).decode()
        except (KeyError, InvalidToken):
            raise SecretUnreadable(
                "A stored secret can't be decrypted because its key is missing. Enter the secret again, or "
                "add the key to THREADKEEP_SECRET_KEY."
            ) from None

    def make_key(self) -> None:
        """Creates the key file, whose key seals secrets from then on."""
        self._use([self._written_key()])

    def sign(self, purpose: str, message: bytes) -> bytes:
        """What only an owner of the first key can make of a message, and for this purpose only."""
        if not self._keys:
            self.make_key()
        return _mac(self._texts[0], purpose, message)

    def has_signed(self, purpose: str, message: bytes, signature: bytes) -> bool:
        """Whether `sign` made this of the message, with any of the keys."""
        return any(hmac.compare_digest(_mac(it, purpose, message), signature) for it in self._texts)

    def _use(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)
        self._keys = dict(map(_key, texts))

    def _written_key(self) -> str:
        if self._key_file is None:
            raise SecretKeyRequired(
                "Threadkeep can't store secrets until the operator sets THREADKEEP_SECRET_KEY."
            )
        key = secrets.token_urlsafe(32)
        try:
            _write(self._key_file, key)
        except OSError as exc:
            raise StorageRefused(
                f"Can't write the secret key file {self._key_file}: {exc.strerror}."
            ) from exc
        return key


class SealedSecret(Secret):
    """A secret as stored: decrypted only when used, so that a lost key breaks nothing else."""

    __slots__ = ("_box",)

    def __init__(self, token: str, box: SecretBox) -> None:
        super().__init__(token)
        self._box = box

    @property
    def token(self) -> str:
        """The stored form."""
        return self._kept

    @property
    def is_readable(self) -> bool:
        """Whether its key is available."""
        try:
            self.reveal()
        except SecretUnreadable:
            return False
        return True

    def is_sealed_by(self, key: str | None) -> bool:
        """Whether this key sealed it."""
        return self._kept.partition(".")[0] == key

    def reveal(self) -> str:
        """Decrypts it."""
        return self._box.open(self._kept)


def _key(text: str) -> tuple[str, Fernet]:
    """A key and its name, both derived from any text."""
    derived = HKDF(SHA256(), length=36, salt=None, info=b"threadkeep secrets").derive(text.encode())
    return derived[32:].hex(), Fernet(base64.urlsafe_b64encode(derived[:32]))


def _mac(text: str, purpose: str, message: bytes) -> bytes:
    """A message's HMAC under a key of its own, derived from the same text as the key that seals."""
    derived = HKDF(SHA256(), length=32, salt=None, info=f"threadkeep {purpose}".encode()).derive(
        text.encode()
    )
    return hmac.digest(derived, message, "sha256")


def _read(key_file: Path | None) -> Sequence[str]:
    if key_file is None:
        return ()
    try:
        return key_file.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as exc:
        raise StorageRefused(f"Can't read the secret key file {key_file}.") from exc


def _write(key_file: Path, key: str) -> None:
    """All or nothing, and private: a half-written key would be worse than none."""
    make_data_folder(key_file.parent)
    fresh = key_file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, f"{key}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fresh.replace(key_file)
