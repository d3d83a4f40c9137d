"""What learner families share."""
