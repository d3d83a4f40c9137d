"""How work is run: atomic writes, progress, and later engines over shards and cells."""
