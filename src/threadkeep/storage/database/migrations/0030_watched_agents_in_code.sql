-- What the program of a turn is doing: its oldest open step, and since when, as its node said last.
ALTER TABLE tk_turns ADD COLUMN step text;
ALTER TABLE tk_turns ADD COLUMN step_since bigint;
-- Whether its user was told that nobody runs its program; false again once somebody does.
ALTER TABLE tk_turns ADD COLUMN absence_noted boolean NOT NULL DEFAULT FALSE;
CREATE INDEX tk_turns_code_unnoted ON tk_turns (lease_until)
    WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND NOT absence_noted;
-- For admins, oldest first.
CREATE INDEX tk_turns_waiting_by_age ON tk_turns (id) WHERE status = 'WAITING' AND origin = 'live';

-- What each worker says of itself: `capacity` is how many turns it runs at once, NULL without a limit; `running` is how many of
-- this program run. `blocked_ms` is for how long its event loop had not answered; `is_open` is false meanwhile.
ALTER TABLE tk_programs ADD COLUMN name text NOT NULL DEFAULT '';
ALTER TABLE tk_programs ADD COLUMN sdk text NOT NULL DEFAULT '';
ALTER TABLE tk_programs ADD COLUMN capacity bigint;
ALTER TABLE tk_programs ADD COLUMN running bigint NOT NULL DEFAULT 0;
ALTER TABLE tk_programs ADD COLUMN blocked_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE tk_programs ADD COLUMN connected_at bigint NOT NULL DEFAULT 0;
