-- A key with a realm acts for an application's users, `realm:NAME`; with an empty one for any user. NULL: for its own user.
ALTER TABLE tk_keys ADD COLUMN act_as text;
ALTER TABLE tk_keys ADD COLUMN may_delete boolean NOT NULL DEFAULT FALSE;
