"""How work is run: engines, threads, checkpoints, atomic writes, progress."""
