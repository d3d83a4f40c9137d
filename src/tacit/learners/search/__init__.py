"""Searches: a learner whose parameters are chosen on the private records, and what that costs."""
