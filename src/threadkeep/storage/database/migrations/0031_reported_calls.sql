-- A call that a program made itself and reported afterwards, and what it says that the call cost, in trillionths of the
-- currency's unit. `cost` is what we say, NULL where we know no price.
ALTER TABLE tk_ledger ADD COLUMN reported boolean NOT NULL DEFAULT FALSE;
ALTER TABLE tk_ledger ADD COLUMN reported_cost bigint;
