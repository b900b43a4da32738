-- A model call can also be a reply outside any conversation. SQLite can't change a table's checks.
CREATE TABLE tk_ledger_after (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid,
    key_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun', 'completion')),
    model text,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    estimated boolean NOT NULL,
    cost bigint,
    currency text,
    turns bigint NOT NULL,
    at bigint NOT NULL,
    day text NOT NULL
);
INSERT INTO tk_ledger_after SELECT id, user_id, agent_id, key_id, purpose, model, input_tokens, output_tokens,
    cache_read_tokens, cache_write_tokens, estimated, cost, currency, turns, at, day
FROM tk_ledger;
DROP TABLE tk_ledger;
ALTER TABLE tk_ledger_after RENAME TO tk_ledger;
CREATE INDEX tk_ledger_user ON tk_ledger (user_id, day);
CREATE INDEX tk_ledger_agent ON tk_ledger (agent_id, day);
CREATE INDEX tk_ledger_day ON tk_ledger (day);
CREATE TABLE tk_reservations_after (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid,
    key_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun', 'completion')),
    model text,
    amount bigint NOT NULL,
    currency text NOT NULL,
    held_by text NOT NULL,
    at bigint NOT NULL,
    day text NOT NULL
);
INSERT INTO tk_reservations_after SELECT id, user_id, agent_id, key_id, purpose, model, amount, currency, held_by,
    at, day
FROM tk_reservations;
DROP TABLE tk_reservations;
ALTER TABLE tk_reservations_after RENAME TO tk_reservations;
CREATE INDEX tk_reservation_user ON tk_reservations (user_id);
CREATE INDEX tk_reservation_time ON tk_reservations (at);
