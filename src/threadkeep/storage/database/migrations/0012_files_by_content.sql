-- Files belong to their user: any of the user's conversations can use one, and bytes that a user has twice are
-- kept once. The former files wait in tables of their own until a step in Python (storage/old_files.py) has
-- moved their contents.

CREATE TABLE tk_files_before AS SELECT * FROM tk_files;
CREATE UNIQUE INDEX tk_files_before_by_id ON tk_files_before (id);
CREATE TABLE tk_file_pieces_before AS SELECT * FROM tk_file_pieces;
CREATE INDEX tk_file_pieces_before_by_file ON tk_file_pieces_before (file_id);
DROP TABLE tk_file_pieces;
DROP TABLE tk_files;

CREATE TABLE tk_files (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    width integer,
    height integer,
    -- How many pages a PDF has that anybody can open.
    pages integer,
    -- Its other forms (JSON).
    renditions text NOT NULL,
    created_at bigint NOT NULL,
    -- Since when it waits for its first message; NULL once a message has it.
    unsent_since bigint
);
CREATE INDEX tk_files_by_user ON tk_files (user_id);
CREATE INDEX tk_files_unsent ON tk_files (unsent_since) WHERE unsent_since IS NOT NULL;
CREATE INDEX tk_files_unsent_of_user ON tk_files (user_id) WHERE unsent_since IS NOT NULL;

-- The conversations that use a file. A file without one that does not wait for a message is deleted.
CREATE TABLE tk_file_uses (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation_id, file_id)
);
CREATE INDEX tk_file_uses_by_file ON tk_file_uses (file_id);

-- The bytes that a user's files have, each once. They lie in a folder under the id, or in the table of pieces.
-- An id is never used again, so that removing the bytes of a deleted row cannot hit those of a new one.
CREATE TABLE tk_contents (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    UNIQUE (user_id, sha256)
);
CREATE INDEX tk_contents_by_user ON tk_contents (user_id, size);
CREATE TABLE tk_content_pieces (
    content_id uuid NOT NULL REFERENCES tk_contents (id) ON DELETE CASCADE,
    number integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (content_id, number)
);

-- The forms of a file: the original, under the file's own id, and its renditions.
CREATE TABLE tk_file_forms (
    id uuid NOT NULL PRIMARY KEY,
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    content_id uuid NOT NULL REFERENCES tk_contents (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('value', 'artifact')),
    media_type text NOT NULL
);
CREATE INDEX tk_file_forms_by_file ON tk_file_forms (file_id);
CREATE INDEX tk_file_forms_by_content ON tk_file_forms (content_id);

-- Microseconds: the time up to which the user's uploads are used up if they come evenly.
ALTER TABLE tk_allowances ADD COLUMN uploads_paced_to bigint NOT NULL DEFAULT 0;
