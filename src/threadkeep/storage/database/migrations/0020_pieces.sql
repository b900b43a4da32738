-- Who writes or purges a conversation in pieces: a writer's id, or 'purge'. Meanwhile it is deleted, too, so that
-- nobody sees it, and nobody can restore it; `deleted_at` is the time of the writer's last piece.
ALTER TABLE tk_conversations ADD COLUMN held_by text;
CREATE INDEX tk_conversations_held ON tk_conversations (deleted_at) WHERE held_by IS NOT NULL;
-- When somebody began to delete the user, who then can do nothing; the row goes last.
ALTER TABLE tk_users ADD COLUMN deleted_at bigint;
CREATE INDEX tk_users_deleted ON tk_users (id) WHERE deleted_at IS NOT NULL;
