"""Who runs turns: nodes, leases, recovery, followers."""
