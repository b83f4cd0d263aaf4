from __future__ import annotations

import pytest

from tests.unit.cli.shell import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)
