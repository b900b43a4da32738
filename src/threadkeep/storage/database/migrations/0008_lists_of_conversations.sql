-- Whether its user wants it at the top of the list.
ALTER TABLE tk_conversations ADD COLUMN is_pinned boolean NOT NULL DEFAULT FALSE;
CREATE INDEX tk_conversations_pinned
    ON tk_conversations (user_id, updated_at DESC, id DESC, agent_id, status)
    WHERE is_pinned AND deleted_at IS NULL;
-- What a user has deleted, until it is purged.
CREATE INDEX tk_conversations_deleted_by_user
    ON tk_conversations (user_id, deleted_at DESC, id DESC, agent_id) WHERE deleted_at IS NOT NULL;
