"""What a release costs: units, events, guarantees, budgets and the ledger."""
