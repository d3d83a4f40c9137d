"""What can be read besides a store: one file per format, each with `read`."""
