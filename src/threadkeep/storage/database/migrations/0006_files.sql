-- Files of messages. From when a message has it, a file and its renditions are payloads of the conversation,
-- with the same ids.
CREATE TABLE tk_files (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    -- NULL until a message has it.
    conversation_id uuid REFERENCES tk_conversations (id) ON DELETE CASCADE,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    width integer,
    height integer,
    -- Other forms of an image (JSON).
    renditions text NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX tk_files_by_user ON tk_files (user_id);
CREATE INDEX tk_files_by_conversation ON tk_files (conversation_id);
CREATE INDEX tk_files_unsent ON tk_files (created_at) WHERE conversation_id IS NULL;
-- The contents of those that no message has, where the database keeps them: in pieces, so that nobody holds a
-- whole one.
CREATE TABLE tk_file_pieces (
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    name text NOT NULL,
    number integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (file_id, name, number)
);
