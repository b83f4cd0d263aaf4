"""A module is one idea and a function fits on a page."""

import ast

from tests.tidy.source import python_files, shown

MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 70


def test_modules_are_short() -> None:
    lengths = {shown(file): len(file.read_text(encoding="utf-8").splitlines()) for file in python_files()}
    long = [f"{file}: {lines} lines" for file, lines in lengths.items() if lines > MODULE_LINES_MAX]
    assert not long, f"\nmore than {MODULE_LINES_MAX} lines:\n" + "\n".join(long)


def test_functions_are_short() -> None:
    long = [
        f"{shown(file)}:{line}: {name} has {lines} lines"
        for file in python_files()
        for line, name, lines in function_sizes(file.read_text(encoding="utf-8"))
        if lines > FUNCTION_LINES_MAX
    ]
    assert not long, f"\nmore than {FUNCTION_LINES_MAX} lines:\n" + "\n".join(long)


def function_sizes(text: str) -> list[tuple[int, str, int]]:
    """Line, name and length of each function, its decorators left out."""
    return [
        (node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def test_function_sizes_count_every_kind_of_function() -> None:
    text = "class A:\n    @cache\n    def b(self):\n        x = 1\n\n        return x\n\nasync def c(): pass\n"
    assert sorted(function_sizes(text)) == [(3, "b", 4), (8, "c", 1)]
