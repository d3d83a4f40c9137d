"""Accounting of privacy: units, events, guarantees, budgets and the ledger."""
