-- Some of a message's many children are read in their order, and the newest one.
DROP INDEX tk_messages_by_parent;
CREATE INDEX tk_messages_by_parent ON tk_messages (parent_id, conversation_id, seq);
