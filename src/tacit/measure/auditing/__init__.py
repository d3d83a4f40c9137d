"""Audits: lower bounds on what a mechanism or a release reveals, beside what it promises."""
