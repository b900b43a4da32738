-- A conversation's path that moves in pieces, because many messages leave or join it: of those after `after_seq` and up
-- to `to_seq`, until it is done the ones that don't join are on the path, from then on only the ones that do. What is
-- marked otherwise is then changed in pieces, from the first one on, and `after_seq` follows.
CREATE TABLE tk_path_moves (
    conversation_id uuid NOT NULL PRIMARY KEY REFERENCES tk_conversations (id) ON DELETE CASCADE,
    -- Names the writer.
    id uuid NOT NULL,
    after_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    -- Being prepared, done, or left by its writer without being done.
    state text NOT NULL CHECK (state IN ('prepared', 'done', 'left')),
    -- The time of the writer's last piece.
    touched_at bigint NOT NULL
);
ALTER TABLE tk_messages ADD COLUMN joins boolean NOT NULL DEFAULT FALSE;
