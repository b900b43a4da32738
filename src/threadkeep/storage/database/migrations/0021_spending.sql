-- From here on every charge is counted in tk_spending, whether or not a budget is in use: a budget begins by reading
-- its row, and nothing sums up the ledger. This fills in the newest month and day of the ledger; earlier ones are over.
-- In two parts, since the sum of a large installation has more digits than the databases' numbers; no budget is larger
-- than 9 million.
INSERT INTO tk_spending (scope, scope_id, period, currency, spent, reserved)
SELECT scope, scope_id, period, currency,
    CASE WHEN SUM(cost / 1000000) >= 9000000000000 THEN 9000000000000000000
        ELSE CAST(SUM(cost / 1000000) * 1000000 + SUM(cost % 1000000) AS bigint) END,
    0
FROM (
    SELECT 'user' AS scope, user_id AS scope_id, substr(day, 1, 7) AS period, currency, cost, day FROM tk_ledger
    UNION ALL SELECT 'user', user_id, day, currency, cost, day FROM tk_ledger
        WHERE day = (SELECT MAX(day) FROM tk_ledger)
    UNION ALL SELECT 'agent', CAST(agent_id AS text), substr(day, 1, 7), currency, cost, day FROM tk_ledger
    UNION ALL SELECT 'key', CAST(key_id AS text), substr(day, 1, 7), currency, cost, day FROM tk_ledger
) AS paid
WHERE cost > 0 AND scope_id IS NOT NULL AND day >= (SELECT substr(MAX(day), 1, 7) FROM tk_ledger)
GROUP BY scope, scope_id, period, currency
ON CONFLICT DO NOTHING;
CREATE INDEX tk_spending_period ON tk_spending (period);

-- What deleted users have spent in the periods that are not over, by a keyed hash of their id: their budgets hold if
-- they come again.
CREATE TABLE tk_former_spending (
    name text NOT NULL,
    period text NOT NULL,
    currency text NOT NULL,
    spent bigint NOT NULL,
    PRIMARY KEY (name, period, currency)
);

-- The fence of the turn under which it was reserved: only the node that holds the turn gives it back. 0 outside turns.
ALTER TABLE tk_reservations ADD COLUMN fence bigint NOT NULL DEFAULT 0;
