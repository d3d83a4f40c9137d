"""Running work: engines, threads, checkpoints, atomic writes, progress."""
