-- Sign-ins with a provider that have begun: any node finishes them, once, within ten minutes. `state_hash` is that of what
-- the provider sends back, `browser_hash` that of a cookie of the browser that began.
CREATE TABLE tk_sign_in_attempts (
    state_hash text NOT NULL PRIMARY KEY,
    provider text NOT NULL,
    browser_hash text NOT NULL,
    verifier text NOT NULL,
    nonce text NOT NULL,
    next text NOT NULL,
    expires_at bigint NOT NULL
);

-- With what a provider is asked again about a user: the encrypted refresh token of their last sign-in that gave one.
-- `checked_at`: when the provider last confirmed the user; `due_at`: when it is asked again.
CREATE TABLE tk_sign_in_grants (
    user_id text NOT NULL PRIMARY KEY REFERENCES tk_users (id) ON DELETE CASCADE,
    provider text NOT NULL,
    refresh_token text NOT NULL,
    checked_at bigint NOT NULL,
    due_at bigint NOT NULL
);
CREATE INDEX tk_sign_in_grants_due ON tk_sign_in_grants (provider, due_at);
