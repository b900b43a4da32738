-- Agents whose code is a program: `code_key` identifies the program for ever. `code_version` is that of the newest code
-- that has declared the agent, NULL once an admin has deleted it; `code` is what it declares.
ALTER TABLE tk_agents ADD COLUMN code_key text;
ALTER TABLE tk_agents ADD COLUMN code_version bigint;
ALTER TABLE tk_agents ADD COLUMN code text;
CREATE UNIQUE INDEX tk_agents_code_key ON tk_agents (code_key) WHERE code_key IS NOT NULL;

-- The program that a turn needs, and the version of the code that began to run it: NULL as long as none has.
ALTER TABLE tk_turns ADD COLUMN code_key text;
ALTER TABLE tk_turns ADD COLUMN code_version bigint;
-- Turns that no node can run at the moment, however many, don't delay the takeover of others.
DROP INDEX tk_turns_leases;
CREATE INDEX tk_turns_leases ON tk_turns (code_key, lease_until) WHERE status = 'RUNNING' AND origin = 'live';
-- Again after it: of two that look alike to PostgreSQL, it takes the newer one, and a user's turns are few.
DROP INDEX tk_turns_running_of_user;
CREATE INDEX tk_turns_running_of_user ON tk_turns (user_id) WHERE status = 'RUNNING' AND origin = 'live';
CREATE INDEX tk_turns_code_unbegun ON tk_turns (lease_until)
    WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND code_version IS NULL;
CREATE INDEX tk_turns_code_begun ON tk_turns (lease_until)
    WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND code_version IS NOT NULL;
CREATE INDEX tk_turns_code_stopping ON tk_turns (lease_until)
    WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND abort_requested;

-- The programs that each node can run; `worker` is the process that runs them for it, empty for the node itself.
-- `is_open` is false once the node has closed; the row stays a while, so that messages wait for its successor.
CREATE TABLE tk_programs (
    key text NOT NULL,
    version bigint NOT NULL,
    node text NOT NULL,
    worker text NOT NULL,
    seen_at bigint NOT NULL,
    is_open boolean NOT NULL DEFAULT TRUE,
    PRIMARY KEY (key, version, node, worker)
);
CREATE INDEX tk_programs_node ON tk_programs (node);

-- What a program keeps between the turns of a conversation, with each reply that changed it.
CREATE TABLE tk_states (
    message_id uuid NOT NULL PRIMARY KEY REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    payload bytea NOT NULL
);
CREATE INDEX tk_states_conversation ON tk_states (conversation_id);

-- Large values of a program's steps, as long as the turn's log.
CREATE TABLE tk_step_values (
    id uuid NOT NULL PRIMARY KEY,
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    content bytea NOT NULL
);
CREATE INDEX tk_step_values_turn ON tk_step_values (turn_id);
CREATE INDEX tk_step_values_conversation ON tk_step_values (conversation_id);

-- Receipts of a turn's model calls after the first, which is in tk_receipts, as are the texts that they name.
CREATE TABLE tk_call_receipts (
    turn_id uuid NOT NULL REFERENCES tk_receipts (turn_id) ON DELETE CASCADE,
    call bigint NOT NULL,
    receipt text NOT NULL,
    PRIMARY KEY (turn_id, call)
);

-- The turn whose call it is for, if the turn can have several at once: then each has a reservation with an id of its own.
ALTER TABLE tk_reservations ADD COLUMN turn_id uuid;
CREATE INDEX tk_reservations_turn ON tk_reservations (turn_id) WHERE turn_id IS NOT NULL;
