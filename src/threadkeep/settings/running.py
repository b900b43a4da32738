"""Run the server: in how many processes, stop it, continue after a crash, and read its log."""

from typing import Annotated, Literal, Self

from msgspec import Meta
from msgspec.structs import replace

from threadkeep.domain.errors import SettingsError
from threadkeep.settings.limits import LimitSettings


class RunningSettings(LimitSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server runs."""

    processes: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="PostgreSQL: processes of `threadkeep serve` that share its port, one for each core. "
            "They also share DATABASE_POOL_SIZE, MAX_CONNECTIONS, MAX_IDLE_SOCKETS, MCP_MAX_SERVERS and "
            "FILE_WORKERS.",
        ),
    ] = 1
    agents: Annotated[
        tuple[str, ...],
        Meta(
            description="Agents in code that this server runs, each as `module:name`; comma-separated. "
            "In the settings file, `load` in `[agents]`."
        ),
    ] = ()
    agents_patience_s: Annotated[
        float,
        Meta(
            gt=0,
            le=120,
            description="Seconds an agent in code that runs again may ask for nothing that is recorded; then "
            "its turn fails with REPLAY_DIVERGED. Time in which it blocks its event loop doesn't count.",
        ),
    ] = 10
    agents_pause_after_s: Annotated[
        float,
        Meta(
            gt=0,
            le=60,
            description="Seconds the function of an agent in code waits for its user. Then it ends, and runs "
            "again when the user has answered.",
        ),
    ] = 1
    check_agents: Annotated[
        bool,
        Meta(
            description="After each turn of an agent in code, run its function again against what is "
            "recorded, and log where it does something else; same as --check-agents. Code outside steps then "
            "runs twice."
        ),
    ] = False
    resume_within_hours: Annotated[
        float,
        Meta(
            ge=0,
            description="Hours after which Threadkeep ends an abandoned turn instead of resuming it.",
        ),
    ] = 24
    shutdown_grace_s: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds running turns get to finish when the server stops; a second signal stops it "
            "immediately.",
        ),
    ] = 10
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="Minimum level of log lines: debug, info, warning or error."),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="Log format: text for people, or json with one object per line for programs."),
    ] = "text"

    def check_processes(self) -> None:
        """Rejects several processes on a database that only one can use."""
        if self.processes > 1 and self.on_sqlite:
            raise SettingsError(
                f"THREADKEEP_PROCESSES is {self.processes}, but only one process can use a SQLite database. "
                "Set THREADKEEP_DATABASE_URL to a PostgreSQL database, or run one process."
            )

    @property
    def of_each_process(self) -> Self:
        """The settings with one process's share of what all of them may use together."""

        def share(most: int) -> int:
            return -(-most // self.processes)

        return replace(
            self,
            database_pool_size=share(self.database_pool_size),
            max_connections=share(self.max_connections),
            max_idle_sockets=share(self.max_idle_sockets),
            mcp_max_servers=share(self.mcp_max_servers),
            file_workers=share(self.file_workers),
        )
