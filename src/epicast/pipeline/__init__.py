"""From traces to answers, on Spark: sweeps of simulations, tables, checked guarantees, metrics, figures and reports."""
