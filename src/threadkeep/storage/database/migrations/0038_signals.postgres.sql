-- What nodes tell each other where one of them can't LISTEN (THREADKEEP_BUS_URL=poll:). Rows are kept for a minute; their
-- numbers rise in the order of the commits.
CREATE TABLE tk_signals (
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node text NOT NULL,
    payload text NOT NULL,
    written_at bigint NOT NULL
);
