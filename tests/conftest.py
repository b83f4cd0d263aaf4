"""Hypothesis draws the same examples on every run: a test that passes once passes everywhere."""

from hypothesis import settings

settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")
