-- What each user has taken of their turns, for all nodes together. Used on PostgreSQL: a node that is alone
-- with its database counts by itself.
CREATE TABLE tk_allowances (
    user_id text NOT NULL PRIMARY KEY REFERENCES tk_users (id) ON DELETE CASCADE,
    -- Microseconds: the time up to which the turns are used up if they come evenly.
    paced_to bigint NOT NULL,
    -- The turns that were taken lately, each with its time (JSON).
    beginning text NOT NULL
);
CREATE INDEX tk_turns_running_of_user ON tk_turns (user_id) WHERE status = 'RUNNING' AND origin = 'live';
-- Session ids are sealed with the key for secrets; the first start does that, and makes the hashes.
ALTER TABLE tk_conversations ADD COLUMN session_hash text;
CREATE UNIQUE INDEX tk_conversations_by_session ON tk_conversations (session_hash);
