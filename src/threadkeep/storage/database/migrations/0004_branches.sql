-- By the parent first: an index that begins with the conversation looks as good for a page of messages as the
-- one on their numbers, and PostgreSQL sometimes took it and sorted.
DROP INDEX tk_messages_by_parent;
CREATE INDEX tk_messages_by_parent ON tk_messages (parent_id, conversation_id);
