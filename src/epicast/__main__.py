"""`python -m epicast` is the command `epicast`, with the Python that was named."""

from __future__ import annotations

from epicast.cli.main import main

if __name__ == "__main__":
    main()
