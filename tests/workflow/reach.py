"""Which modules' code a function can run, from the source text alone."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = "nerprobe"
Name = tuple[str, str]
"""A module of the package and a name at its top level."""


class Sources:
    """The top-level names of every module of a package, and what each of them mentions."""

    def __init__(self, folder: Path) -> None:
        self._trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in folder.glob("*.py")}

    @cache  # noqa: B019 - lives as long as one test
    def definitions(self, module: str) -> dict[str, ast.stmt]:
        """Return the functions, classes and constants of a module by name."""
        found: dict[str, ast.stmt] = {}
        for node in self._trees[module].body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {
                    name.id: node for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
                }
        return found

    def imported(self, tree: ast.AST) -> dict[str, Name]:
        """Return what `from nerprobe.x import y` binds anywhere below a node; y is "" for a whole module."""
        found: dict[str, Name] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == PACKAGE for alias in node.names), "import by from only"
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE:
                module = node.module.partition(".")[2]
                for alias in node.names:
                    target = (module, alias.name) if module else (alias.name, "")
                    found[alias.asname or alias.name] = target
        return found

    def mentioned(self, name: Name) -> set[Name]:
        """Return the package's names that a definition mentions, in its own module or imported."""
        module, symbol = name
        node = self.definitions(module).get(symbol)
        if node is None:
            return set()
        bound = self.imported(self._trees[module]) | {own: (module, own) for own in self.definitions(module)}
        words = {word.id for word in ast.walk(node) if isinstance(word, ast.Name)}
        return {bound[word] for word in words if word in bound} | set(self.imported(node).values())

    def reached(self, start: Name) -> set[str]:
        """Return the modules of all definitions that a function can come to."""
        seen: set[Name] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += self.mentioned(name)
        return {module for module, _ in seen}
