"""Ties our users to the host application's in one PostgreSQL database: deleting one deletes the other.

Our ids are text, the host's may be numbers or UUIDs. So `tk_users` has a column that the database generates
from the id, in the type of the host's column, with the foreign key on it: no trigger, nothing of the host's
changes, and an id that is not spelled as the host would spell it is refused.
"""

from threadkeep.domain.errors import SettingsError
from threadkeep.storage.database.connector import Plan, Row, Statement

KEY_TYPES = ("text", "character varying", "smallint", "integer", "bigint", "uuid")

# A foreign key can reference only a column with a unique index that is valid, immediate and not partial.
_FIND = Statement(
    """SELECT host.oid, quote_ident(nspname) || '.' || quote_ident(relname), attnum, quote_ident(attname),
        format_type(atttypid, NULL),
        EXISTS (SELECT 1 FROM pg_index WHERE indrelid = host.oid AND indisunique AND indisvalid
            AND indimmediate AND indpred IS NULL AND indnkeyatts = 1 AND indkey[0] = attnum)
    FROM pg_class AS host JOIN pg_namespace ON pg_namespace.oid = relnamespace
    LEFT JOIN pg_attribute ON attrelid = host.oid AND attname = :column AND attnum > 0 AND NOT attisdropped
    WHERE host.oid = to_regclass(:name)"""
)
# Which of the host's columns the foreign key references now. If it is another one, dropping our column drops
# the key with it.
_TIED = Statement(
    """SELECT confrelid, confkey[1] FROM pg_constraint
    WHERE conrelid = to_regclass('tk_users') AND conname = 'tk_users_host'"""
)
_UNTIE = Statement("ALTER TABLE tk_users DROP COLUMN host_id")


def find_host_column(user_table: str) -> Plan[Row]:
    """The catalog entry of `users.id` or `schema.users.id`; refuses a column no key can reference."""
    *place, column = user_table.split(".")
    rows = yield _FIND(name=".".join(f'"{name}"' for name in place), column=column)
    if not rows:
        raise _refused(user_table, "the table doesn't exist in the database")
    _, _, number, _, kind, is_unique = rows[0]
    if number is None:
        raise _refused(user_table, "the column doesn't exist in the table")
    if kind not in KEY_TYPES:
        raise _refused(user_table, f"the column has type {kind}; use {', '.join(KEY_TYPES)}")
    if not is_unique:
        raise _refused(user_table, "the column must be the primary key or unique")
    return rows[0]


def tie_users(host_column: Row) -> Plan[None]:
    """Makes our users reference the host's, if they don't yet."""
    table_id, table, number, column, kind, _ = host_column
    tied = yield _TIED()
    if list(tied) == [(table_id, number)]:
        return
    if tied:
        yield _UNTIE()
    yield Statement(
        f"""ALTER TABLE tk_users
            ADD COLUMN host_id {kind} GENERATED ALWAYS AS (CAST(id AS {kind})) STORED UNIQUE
                CONSTRAINT tk_users_host REFERENCES {table} ({column}) ON DELETE CASCADE,
            ADD CONSTRAINT tk_users_host_id CHECK (CAST(host_id AS text) = id)"""
    )()


def _refused(user_table: str, why: str) -> SettingsError:
    return SettingsError(f"THREADKEEP_USER_TABLE={user_table}: {why}.")
