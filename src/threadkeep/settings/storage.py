"""Store data: where, and for how long."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qs, quote

from msgspec import Meta

from threadkeep.domain.data_folder import DATABASE, PAYLOADS
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.retention.rule import MOST_DAYS
from threadkeep.domain.workspace import Workspaces
from threadkeep.settings.models import ModelSettings
from threadkeep.settings.values import Secret, split_url

USUAL_DATA = Path(".threadkeep")
"""The data folder if nobody names one."""


class StorageSettings(ModelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where data is stored, and for how long."""

    data: Annotated[
        Path, Meta(description="Folder for all data; nodes on one PostgreSQL database share it.")
    ] = USUAL_DATA
    database_url: Annotated[
        Secret,
        Meta(description="sqlite:///path or postgresql://…; by default, a SQLite file in the data folder."),
    ] = None
    database_password: Annotated[
        Secret, Meta(description="PostgreSQL: the password, where DATABASE_URL has none.")
    ] = None
    database_schema: Annotated[
        Annotated[str, Meta(pattern="^[a-z_][a-z0-9_]{0,62}$")] | None,
        Meta(description="PostgreSQL: keep Threadkeep's tables in this schema."),
    ] = None
    user_table: Annotated[
        Annotated[str, Meta(pattern=r"^([A-Za-z_]\w*\.){1,2}[A-Za-z_]\w*$")] | None,
        Meta(
            description="PostgreSQL, inside a host application: the column with the application's user ids, "
            "such as users.id. Deleting a user there also deletes their data here."
        ),
    ] = None
    database_pool_size: Annotated[
        int, Meta(ge=1, le=200, description="PostgreSQL: maximum number of connections.")
    ] = 8
    bus_url: Annotated[
        Literal["poll:"] | None,
        Meta(
            description="PostgreSQL: how nodes notify each other. By default with LISTEN; with poll: each "
            "node asks the database, for connection poolers that LISTEN can't pass (PgBouncer in transaction "
            "mode)."
        ),
    ] = None
    payload_store: Annotated[
        Literal["folder", "database"] | None,
        Meta(
            description="Where to store large values and files from tools: folder (in the data folder; the "
            "default with SQLite) or database (the default with PostgreSQL)."
        ),
    ] = None
    turn_log_ttl_hours: Annotated[
        int, Meta(ge=0, description="Hours during which clients can replay a finished turn's events.")
    ] = 24
    retention_days: Annotated[
        int, Meta(ge=0, description="Days until a deleted conversation is purged for good.")
    ] = 30
    delete_after_days: Annotated[
        int,
        Meta(
            ge=0,
            le=MOST_DAYS,
            description="Days without a message after which a conversation is deleted, unless it is pinned; "
            "its user gets a notice a week before. Agents can have fewer. 0: never.",
        ),
    ] = 0
    file_ttl_hours: Annotated[
        int, Meta(ge=1, description="Hours an uploaded file waits for its message before it is deleted.")
    ] = 24

    def check_storage(self) -> None:
        """Rejects databases that we don't speak to, and what only one of them can do."""
        if split_url(self.database, "DATABASE_URL").scheme not in {"sqlite", "postgresql", "postgres"}:
            raise SettingsError("THREADKEEP_DATABASE_URL must start with sqlite:/// or postgresql://.")
        self._check_password()
        if self.bus_url and self.on_sqlite:
            raise SettingsError(
                "THREADKEEP_BUS_URL is for nodes on PostgreSQL. With SQLite there is one process: remove it."
            )
        if self.user_table and self.on_sqlite:
            raise SettingsError(
                "THREADKEEP_USER_TABLE requires PostgreSQL. With SQLite, call `await app.delete_user(id)` "
                "when the application deletes a user."
            )

        if self.user_table and self.has_sessions:
            raise SettingsError(
                "THREADKEEP_USER_TABLE lets the application decide who its users are. It can't be combined "
                "with THREADKEEP_INVITATIONS or [sign_in.NAME]."
            )

    def _check_password(self) -> None:
        """Rejects a password that nobody would look at."""
        if self.database_password is None:
            return
        url = split_url(self.database_url or "", "DATABASE_URL")
        if url.scheme not in {"postgresql", "postgres"}:
            raise SettingsError(
                "THREADKEEP_DATABASE_PASSWORD is for a THREADKEEP_DATABASE_URL of PostgreSQL."
            )
        if url.password or "password" in parse_qs(url.query):
            raise SettingsError(
                "Set either THREADKEEP_DATABASE_PASSWORD or a password in THREADKEEP_DATABASE_URL, not both."
            )

    @property
    def database(self) -> str:
        """The database's URL, with the default and the password filled in."""
        url = self.database_url or f"sqlite:///{self.data / DATABASE}"
        if self.database_password is None:
            return url
        return f"{url}{'&' if '?' in url else '?'}password={quote(self.database_password, safe='')}"

    @property
    def on_sqlite(self) -> bool:
        """Whether the database is a SQLite file: one server at a time works on it, and locks its folder."""
        return self.database.startswith("sqlite:")

    @property
    def payload_folder(self) -> Path | None:
        """The folder for payloads; None if the database stores them."""
        default = "folder" if self.on_sqlite else "database"
        return self.data / PAYLOADS if (self.payload_store or default) == "folder" else None

    @property
    def workspaces(self) -> Workspaces:
        """The agents' folders in the data folder; absolute, for programs that run in them."""
        return Workspaces(self.data.absolute())
