-- How far a long summary has come: what a model was paid for outlives a crash, and one that takes too long is
-- not tried again at once.
CREATE TABLE tk_compaction_progress (
    conversation_id uuid NOT NULL PRIMARY KEY REFERENCES tk_conversations (id) ON DELETE CASCADE,
    from_seq bigint NOT NULL,
    -- How many texts of messages the summary covers, and their hash: it counts only for the same ones.
    text_count bigint NOT NULL,
    texts_sha256 text NOT NULL,
    summary text NOT NULL,
    failures bigint NOT NULL,
    not_before bigint NOT NULL
);
