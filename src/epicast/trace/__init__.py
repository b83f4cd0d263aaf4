"""What happened in a run, written down once in one schema: simulated and live nodes write it, all analysis reads it."""
