-- Idempotency keys live as long as what they name. A message that left the queue without a turn of its own
-- stays as a row with its key and without its text; the waiting ones are found beside them.
CREATE INDEX tk_queued_waiting ON tk_queued (conversation_id, position) WHERE taken_at IS NULL;
CREATE INDEX tk_queued_by_key ON tk_queued (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- The turn of a held message has that message's key; this is the key of the request that sent it.
ALTER TABLE tk_turns ADD COLUMN held_key text;
ALTER TABLE tk_turns ADD COLUMN held_request_hash text;
CREATE UNIQUE INDEX tk_turns_held_key ON tk_turns (conversation_id, held_key) WHERE held_key IS NOT NULL;

-- The keys of the requests that created conversations.
CREATE TABLE tk_creation_keys (
    user_id text NOT NULL,
    idempotency_key text NOT NULL,
    request_hash text NOT NULL,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, idempotency_key)
);
CREATE INDEX tk_creation_keys_by_conversation ON tk_creation_keys (conversation_id);
