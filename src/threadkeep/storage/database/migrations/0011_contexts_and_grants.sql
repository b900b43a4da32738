-- The number of the conversation's last message when a compaction was last made or undone, or the path changed: the
-- context windows of earlier replies no longer say where the next one starts.
ALTER TABLE tk_conversations ADD COLUMN window_reset_seq bigint NOT NULL DEFAULT 0;
-- Nobody knows what changed before: each conversation's next window is built as for the first time.
UPDATE tk_conversations SET window_reset_seq = last_seq;

-- The digest of the tool and its server as they were when the user was asked: leave for the conversation covers that
-- definition only. Without it, as in older rows, the user is asked again.
ALTER TABLE tk_approvals ADD COLUMN tool_definition text;
