-- What the last sign-in with a session said of a user: their name, role and groups (JSON). A suspended user can do nothing;
-- `suspended_by` says whether an admin or the provider that signed them in did it. `invited`: an invitation made them.
ALTER TABLE tk_users ADD COLUMN name text;
ALTER TABLE tk_users ADD COLUMN role text CHECK (role IN ('user', 'admin'));
ALTER TABLE tk_users ADD COLUMN groups text NOT NULL DEFAULT '[]';
ALTER TABLE tk_users ADD COLUMN suspended_at bigint;
ALTER TABLE tk_users ADD COLUMN suspended_by text CHECK (suspended_by IN ('admin', 'provider'));
ALTER TABLE tk_users ADD COLUMN invited boolean NOT NULL DEFAULT FALSE;

-- A person's sign-in in one browser. The token is only in the browser's cookie.
CREATE TABLE tk_sessions (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    token_hash text NOT NULL UNIQUE,
    way text NOT NULL,
    device text NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    ends_at bigint NOT NULL
);
CREATE INDEX tk_sessions_of_user ON tk_sessions (user_id);

-- Links that sign their receivers in, once. The user need not be there yet. One that was used stays until it expires.
CREATE TABLE tk_invitations (
    id uuid NOT NULL PRIMARY KEY,
    token_hash text NOT NULL UNIQUE,
    user_id text NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'admin')),
    invited_by text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    accepted_at bigint
);
CREATE INDEX tk_invitations_of_user ON tk_invitations (user_id);
