-- When a conversation that nobody writes in is deleted; NULL until its user is told.
ALTER TABLE tk_conversations ADD COLUMN deletes_at bigint;
CREATE INDEX tk_conversations_deleting ON tk_conversations (deletes_at) WHERE deletes_at IS NOT NULL;
-- Those whose user hasn't been told, so that the hourly search reads only what it changes.
CREATE INDEX tk_conversations_idle ON tk_conversations (agent_id, updated_at)
    WHERE deletes_at IS NULL AND deleted_at IS NULL AND NOT is_pinned;

-- After how many days without a message conversations with an agent are deleted, 0 for never; since when its owner wants
-- that, and when they last made it shorter.
ALTER TABLE tk_agents ADD COLUMN delete_after_days bigint NOT NULL DEFAULT 0;
ALTER TABLE tk_agents ADD COLUMN delete_since bigint;
ALTER TABLE tk_agents ADD COLUMN delete_shortened_at bigint;
CREATE INDEX tk_agents_deleting ON tk_agents (id) WHERE delete_after_days > 0;
