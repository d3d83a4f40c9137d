"""Learners: scikit-learn classifiers that promise a guarantee before they see data."""
