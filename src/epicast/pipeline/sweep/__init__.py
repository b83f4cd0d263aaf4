"""Many simulations at once: an experiment becomes rows, every row a run on some executor."""
