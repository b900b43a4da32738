-- Turns that survive their node: which versions may take them over, what they wait for, what comes after them.

-- The version of the log's format: a node leaves alone what a later version has written.
ALTER TABLE tk_turns ADD COLUMN log_version bigint NOT NULL DEFAULT 0;
-- Above 0 where messages are queued behind the turn; counts those that come while it is active, so that its end
-- has seen them all.
ALTER TABLE tk_turns ADD COLUMN queue_version bigint NOT NULL DEFAULT 0;

-- What turns ask their users, and what they answer (JSON).
CREATE TABLE tk_approvals (
    id uuid NOT NULL PRIMARY KEY,
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('tool', 'question', 'elicitation')),
    message text NOT NULL,
    tool_call_id text,
    tool_name text,
    server text,
    arguments text,
    schema text,
    url text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    answer text,
    -- Whether the user allows every call of this tool in the conversation.
    granted boolean NOT NULL DEFAULT FALSE,
    answered_at bigint
);
CREATE INDEX tk_approvals_by_turn ON tk_approvals (turn_id);
CREATE INDEX tk_approvals_by_conversation ON tk_approvals (conversation_id);
CREATE INDEX tk_approvals_open ON tk_approvals (expires_at) WHERE answered_at IS NULL;
-- For the few turns that wait, of a user or of all.
CREATE INDEX tk_turns_waiting ON tk_turns (user_id) WHERE status = 'WAITING' AND origin = 'live';

-- Messages that wait for the turn before them, or join it where they steer it.
CREATE TABLE tk_queued (
    message_id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    content text NOT NULL,
    -- The files that it has (JSON).
    files text,
    steers_turn_id uuid,
    idempotency_key text,
    request_hash text,
    created_at bigint NOT NULL,
    -- When its turn took it in: it is kept for a day for its idempotency key, and waits no more.
    taken_at bigint,
    CHECK (trim(content, :blank) <> '' OR files IS NOT NULL)
);
CREATE UNIQUE INDEX tk_queued_by_conversation ON tk_queued (conversation_id, position);
