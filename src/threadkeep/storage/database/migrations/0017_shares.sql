-- Conversations that users share by a link, up to a message. `hash` is the hash of the link's token; the token is
-- not stored.
CREATE TABLE tk_shares (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    message_id uuid NOT NULL,
    hash text NOT NULL UNIQUE,
    title text NOT NULL,
    -- JSON lists: the numbers of its messages as pairs of the first and the last of a run, and its files' ids.
    runs text NOT NULL,
    files text NOT NULL,
    with_tools boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint
);
CREATE INDEX tk_share_conversation ON tk_shares (conversation_id, created_at);
