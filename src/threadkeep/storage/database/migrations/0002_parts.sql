-- Messages become lists of parts, and conversations trees of messages. What a reply was made of waits in a
-- table of its own until a step in Python (storage/old_messages.py) has made parts of it.

CREATE TABLE tk_messages_before (
    id uuid NOT NULL PRIMARY KEY,
    thought_process text,
    citations text,
    artifact_ids text
);
INSERT INTO tk_messages_before (id, thought_process, citations, artifact_ids)
    SELECT id, thought_process, citations, artifact_ids FROM tk_messages
    WHERE thought_process IS NOT NULL OR citations IS NOT NULL OR artifact_ids IS NOT NULL
        OR tool_call_count > 0;

-- The last message of the active path.
ALTER TABLE tk_conversations ADD COLUMN tip_id uuid;
UPDATE tk_conversations SET tip_id = (
    SELECT message.id FROM tk_messages AS message
    WHERE message.conversation_id = tk_conversations.id AND message.status <> 'OVERWRITTEN'
    ORDER BY message.seq DESC LIMIT 1);
