-- Models, keys and money.

-- One account with a model provider, as an admin saved it; those in the settings are not here.
CREATE TABLE tk_gateways (
    name text NOT NULL PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('anthropic', 'openai', 'responses', 'local')),
    url text,
    -- Encrypted; NULL without a key.
    api_key text,
    -- The models that it lists, and what the admin says about them (JSON).
    models text NOT NULL,
    -- The model for agents that don't name one.
    default_model text,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

-- A key that a program signs in with, as its user. `hash` is of the whole key, which is not stored.
CREATE TABLE tk_keys (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (trim(name, :blank) <> ''),
    prefix text NOT NULL,
    hash text NOT NULL UNIQUE,
    -- JSON lists; `agents` is NULL for all.
    scopes text NOT NULL,
    agents text,
    -- What its user was allowed when it was made; `is_admin` falls when they sign in without that role.
    is_admin boolean NOT NULL,
    may_run_programs boolean NOT NULL,
    budget_month bigint,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint
);
CREATE INDEX tk_key_user ON tk_keys (user_id, created_at);

-- One row for each model call that a provider may bill: the only source of usage and budgets. It names no
-- conversation and outlives it; it goes with its user. Costs are in trillionths of the currency's unit, NULL where
-- the price is unknown.
CREATE TABLE tk_ledger (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid,
    key_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun')),
    model text,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    estimated boolean NOT NULL,
    cost bigint,
    currency text,
    -- 1 for the first call of a turn, so that a sum counts turns.
    turns bigint NOT NULL,
    -- When the call was made, and which day that was in the operator's time zone ('2026-11-17').
    at bigint NOT NULL,
    day text NOT NULL
);
CREATE INDEX tk_ledger_user ON tk_ledger (user_id, day);
CREATE INDEX tk_ledger_agent ON tk_ledger (agent_id, day);
CREATE INDEX tk_ledger_day ON tk_ledger (day);

-- What each budget has spent and reserved in a day ('2026-11-17') or month ('2026-11'): the sums of the ledger and
-- of the reservations, kept up to date from the first reservation on.
CREATE TABLE tk_spending (
    scope text NOT NULL CHECK (scope IN ('user', 'agent', 'key')),
    scope_id text NOT NULL,
    period text NOT NULL,
    currency text NOT NULL,
    spent bigint NOT NULL,
    reserved bigint NOT NULL,
    PRIMARY KEY (scope, scope_id, period, currency)
);
-- What a model call can cost at most, set aside before it is made; `id` is its turn's, or its own outside a turn.
-- With what the ledger needs to know of the call, if nobody is left to say what it cost.
CREATE TABLE tk_reservations (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid,
    key_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun')),
    model text,
    amount bigint NOT NULL,
    currency text NOT NULL,
    -- The rows of tk_spending that count it: a JSON list of scope, scope_id and period.
    held_by text NOT NULL,
    at bigint NOT NULL,
    day text NOT NULL
);
CREATE INDEX tk_reservation_user ON tk_reservations (user_id);
CREATE INDEX tk_reservation_time ON tk_reservations (at);

CREATE TABLE tk_feedback (
    message_id uuid NOT NULL PRIMARY KEY REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    agent_id uuid NOT NULL,
    rating text NOT NULL CHECK (rating IN ('up', 'down')),
    note text NOT NULL,
    -- Whether the agent's owner may read the turn.
    share_text boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX tk_feedback_conversation ON tk_feedback (conversation_id);
CREATE INDEX tk_feedback_agent ON tk_feedback (agent_id, updated_at, message_id);

-- The key that a turn was begun with or a message queued with, and the model that a queued message asks for.
ALTER TABLE tk_turns ADD COLUMN key_id uuid;
ALTER TABLE tk_queued ADD COLUMN key_id uuid;
ALTER TABLE tk_queued ADD COLUMN model text;
