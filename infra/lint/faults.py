"""The faults that the checks of infra/lint/consistent.py have found, and the walk through a template that they share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAULTS = []


def fault(text):
    FAULTS.append(text)


def walk(value):
    """Every mapping in a template, however deep."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from walk(inner)
