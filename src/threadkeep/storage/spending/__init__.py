"""What model calls have cost, and what budgets have left, in the database."""
