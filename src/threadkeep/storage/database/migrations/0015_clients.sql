-- Other people's clients.

-- A conversation by the id that a client of its user gave it. Another conversation may take the id once this one is
-- deleted.
CREATE TABLE tk_outside_conversations (
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    outside_id text NOT NULL,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, outside_id)
);
CREATE INDEX tk_outside_conversation ON tk_outside_conversations (conversation_id);

-- A user's message by the id that the client gave it; of an edited message, the newest version.
CREATE TABLE tk_outside_messages (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    outside_id text NOT NULL,
    message_id uuid NOT NULL REFERENCES tk_messages (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation_id, outside_id)
);
CREATE INDEX tk_outside_message ON tk_outside_messages (message_id);

-- What the request that began a turn, or queued a message, brought with it (JSON).
ALTER TABLE tk_turns ADD COLUMN begun_with text;
ALTER TABLE tk_queued ADD COLUMN begun_with text;

-- When a node last saw somebody follow a turn that ends when nobody does.
ALTER TABLE tk_turns ADD COLUMN followed_at bigint;
