"""One HTML file for each experiment: published and measured side by side, figures, tables, guarantees."""
