from __future__ import annotations
from epicast.cli.help import new_app
app = new_app()
@app.command()
def engine() -> None: ...
@app.command()
def profile() -> None: ...
