"""Trees of classes: public trees whose leaves are the class list, such as codes below chapters.

A tree is given by the parent of each class. Classes without a parent are the roots, of which there
may be several; above them all stands "no answer". A release that carries a tree answers with an
inner node where no class is likely enough, and some learners take records labelled with one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute.texts import nfc
from tacit.data.labels import MOST_CLASSES, WHOLE_NUMBER, ClassValue, class_list
from tacit.errors import InputError, excerpt, quoted

MOST_LEVELS = 64

# columns of a tree's file
COLUMNS = ("class", "parent")

PREFIX = "prefix:"


@dataclass(frozen=True)
class Tree:
    """A public tree of classes.

    Parameters
    ----------
    parents : dict
        The parent of each class and of each inner node, `{class: parent}`; all texts, or all whole
        numbers. A root has none. Texts are compared in Unicode NFC.

    Raises
    ------
    InputError
        If a node is its own parent, parents run in a circle, or there are more than 64 levels.

    Examples
    --------
    >>> import tacit
    >>> tree = tacit.Tree({"cat": "pet", "dog": "pet", "pet": "animal", "cow": "animal"})
    >>> tree.nodes
    ('animal', 'pet', 'cow', 'cat', 'dog')
    >>> tree.leaves, tree.below("pet"), tree.level("cat")
    (('cow', 'cat', 'dog'), ('cat', 'dog'), 3)
    >>> tacit.Tree.of_prefixes(["E10", "E11", "I10"], [1]).parents
    {'E10': 'E', 'E11': 'E', 'I10': 'I'}
    """

    parents: Mapping[Any, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.parents, Mapping) or not self.parents:
            raise InputError(
                f"tree={quoted(self.parents)} must have the parent of each class; pass for example"
                " tree={'cat': 'animal', 'dog': 'animal'}"
            )
        parents = {_node(child): _node(parent) for child, parent in self.parents.items()}
        types = {type(node) for node in [*parents, *parents.values()]}
        if len(types) > 1:
            raise InputError(
                "tree mixes texts and whole numbers; give only texts, or only whole numbers"
            )
        object.__setattr__(self, "parents", parents)
        self._check_levels()

    @classmethod
    def of(cls, tree: Any) -> Tree:
        """Return a tree, which may be given as the dict of its parents."""
        if isinstance(tree, Tree):
            return tree
        return cls(tree)

    @classmethod
    def read(cls, path: Path | str) -> Tree:
        """Read a CSV file with the columns class and parent; a root has an empty parent, or no
        line.
        """
        parents: dict[ClassValue, ClassValue] = {}
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                reader = csv.DictReader(file, restval="")
                # an empty file has no names at all
                given = reader.fieldnames or ()
                absent = [name for name in COLUMNS if name not in given]
                if absent:
                    raise InputError(
                        f"{path} has no column {absent[0]!r}; name its columns class,parent in the"
                        " first line"
                    )
                for line in reader:
                    _add_line(parents, line, f"{path}, line {reader.line_num}")
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(
                f"{path} cannot be read as a tree ({excerpt(str(error))}); give a CSV file with the"
                " columns class,parent"
            ) from error
        return cls(parents)

    @classmethod
    def of_prefixes(cls, classes: Iterable[Any], prefixes: Sequence[int] | str) -> Tree:
        """Return the tree of codes whose beginnings are their parents.

        Parameters
        ----------
        classes : sequence of str
            The codes.
        prefixes : sequence of int, or str
            The lengths of the beginnings that are inner nodes, or the text before which each
            beginning ends, such as "." or "/".
        """
        codes = class_list(classes)
        parents: dict[ClassValue, ClassValue] = {}
        for code in codes:
            if not isinstance(code, str):
                raise InputError(
                    f"class {code!r} has no beginning, since it is a number; list the codes as"
                    " texts, or pass a dict of parents"
                )
            path = [*_beginnings(nfc(code), prefixes), nfc(code)]
            parents.update(zip(path[1:], path[:-1], strict=True))
        if not parents:
            raise InputError(
                f"tree prefix:{_written(prefixes)} gives no class a parent; name lengths below"
                " those of the codes, or the text between their parts"
            )
        return cls(parents)

    @cached_property
    def nodes(self) -> tuple[ClassValue, ...]:
        """All nodes, level by level from the roots down."""
        names = list(dict.fromkeys([*self.parents.values(), *self.parents]))
        names.sort(key=lambda node: self._levels[node])
        return tuple(names)

    @cached_property
    def leaves(self) -> tuple[ClassValue, ...]:
        """The nodes that are nobody's parent."""
        inner = set(self.parents.values())
        return tuple(node for node in self.nodes if node not in inner)

    def level(self, node: ClassValue) -> int:
        """Return the level of a node: 1 for roots, and one more than its parent's for others."""
        return self._levels[node]

    def path(self, node: ClassValue) -> tuple[ClassValue, ...]:
        """Return the nodes from a root down to this node, which may be no node of the tree."""
        path = [node]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return tuple(reversed(path))

    def below(self, node: ClassValue) -> tuple[ClassValue, ...]:
        """Return the leaves below a node; a leaf alone for itself."""
        return tuple(leaf for leaf in self.leaves if node in self.path(leaf))

    def divided(self, classes: Iterable[Any]) -> tuple[list[ClassValue], list[ClassValue]]:
        """Divide a class list into classes that are leaves and classes that are inner nodes, both
        in its order.
        """
        values = class_list(classes)
        inner = set(self._of_type(values[0]).parents.values())
        return (
            [value for value in values if value not in inner],
            [value for value in values if value in inner],
        )

    def over(self, classes: Iterable[Any]) -> Tree:
        """Return the tree with nodes of the type of these classes, which must hold all its leaves.

        A class that is not in the tree stands beside its roots.

        Raises
        ------
        InputError
            If a leaf is no class, a class is the parent of others, or nodes are of another type.
        """
        values = class_list(classes)
        tree = self._of_type(values[0])
        known = {nfc(value) if isinstance(value, str) else value for value in values}
        inner_nodes = set(tree.parents.values())
        for leaf in tree.leaves:
            if leaf not in known:
                raise InputError(
                    f"tree has {quoted(leaf)}, which is no parent and not among the {len(known)}"
                    " classes; leave it out of the tree, or add it to classes"
                )
        for node in tree.nodes:
            if node in known and node in inner_nodes:
                raise InputError(
                    f"class {quoted(node)} is the parent of others in the tree, and classes are its"
                    " leaves; leave it out of classes, or learn from records labelled with it by"
                    " GradientDescent, NoisySumPrototypes or AutoPrototypes with tree="
                )
        return tree

    def as_texts(self) -> dict[str, str]:
        """Return the parents as texts, as a document states them."""
        return {str(child): str(parent) for child, parent in self.parents.items()}

    def _of_type(self, example: ClassValue) -> Tree:
        """Return the tree with nodes of the type of a class: whole numbers may be written as texts
        in a file.
        """
        if isinstance(self.nodes[0], type(example)):
            return self
        if isinstance(example, str):
            return Tree(self.as_texts())

        texts = [str(node) for node in self.nodes]
        for text in texts:
            if WHOLE_NUMBER.fullmatch(text) is None:
                raise InputError(
                    f"tree has the node {quoted(text)} beside classes that are whole numbers;"
                    " number its inner nodes too, or give the classes names"
                )
        return Tree({int(child): int(parent) for child, parent in self.parents.items()})

    @cached_property
    def _levels(self) -> dict[ClassValue, int]:
        return self._check_levels()

    def _check_levels(self) -> dict[ClassValue, int]:
        """Return the level of each node; refuse circles and too many levels."""
        levels: dict[ClassValue, int] = {}
        for start in self.parents:
            path = [start]
            while path[-1] in self.parents and path[-1] not in levels:
                parent = self.parents[path[-1]]
                if parent == path[-1]:
                    raise InputError(
                        f"tree makes {quoted(parent)} its own parent; leave that line out, since a"
                        " root has no parent"
                    )
                if parent in path:
                    circle = excerpt(" below ".join(map(str, [*path, parent])))
                    raise InputError(
                        f"tree has a circle of parents ({circle}); leave one of these lines out"
                    )
                path.append(parent)
                _check_depth(len(path), start)

            level = levels.get(path[-1], 1)
            for node in reversed(path):
                levels[node] = level
                level += 1
            _check_depth(levels[start], start)
        return levels


def tree_of_option(text: str, classes: Iterable[Any] | None) -> Tree:
    """Return the tree of `--tree`: a CSV file, or prefix: with lengths or a separator.

    >>> tree_of_option("prefix:1,2", ["E10", "E11"]).parents
    {'E1': 'E', 'E10': 'E1', 'E11': 'E1'}
    >>> tree_of_option("prefix:.", ["bank.card", "bank.loan"]).parents
    {'bank.card': 'bank', 'bank.loan': 'bank'}
    """
    if not text.startswith(PREFIX):
        return Tree.read(text)

    rule = text.removeprefix(PREFIX)
    if classes is None:
        raise InputError(
            f"--tree {text} is a tree of the class list; declare it with --classes FILE"
        )
    lengths = rule.split(",")
    if all(length.isascii() and length.isdecimal() for length in lengths):
        return Tree.of_prefixes(classes, [int(length) for length in lengths])
    return Tree.of_prefixes(classes, rule)


def _add_line(parents: dict[ClassValue, ClassValue], line: dict[str, Any], place: str) -> None:
    """Add a line of a tree's file, whose errors name its place."""
    child, parent = (nfc(str(line[name]).strip()) for name in COLUMNS)
    if not child:
        raise InputError(f"{place} names no class; give one class and its parent a line")
    if not parent:
        return
    if parents.get(child, parent) != parent:
        raise InputError(
            f"{place} gives class {quoted(child)} a second parent; give each class one parent"
        )
    parents[child] = parent
    if len(parents) > MOST_CLASSES:
        raise InputError(f"{place} is more than {MOST_CLASSES} classes; leave out what is unused")


def _beginnings(code: str, prefixes: Sequence[int] | str) -> list[str]:
    """Return the beginnings of a code that are its ancestors, the shortest first."""
    if isinstance(prefixes, str):
        if not prefixes:
            raise InputError(
                "tree prefix: needs lengths or a separator; give prefix:3,4 or prefix:."
            )
        ends = [i for i in range(1, len(code)) if code.startswith(prefixes, i)]
    else:
        ends = []
        for length in prefixes:
            is_whole = isinstance(length, int | np.integer) and not isinstance(length, bool)
            if not is_whole or length < 1:
                raise InputError(
                    f"tree prefix length {quoted(length)} must be a whole number, 1 or more;"
                    " correct it"
                )
            ends.append(int(length))
    return [code[:end] for end in sorted(set(ends)) if end < len(code)]


def _written(prefixes: Sequence[int] | str) -> str:
    """Return prefixes as the command line has them."""
    if isinstance(prefixes, str):
        return prefixes
    return ",".join(map(str, prefixes))


def _node(value: Any) -> ClassValue:
    """Return a node as a text in Unicode NFC, or as a whole number."""
    (node,) = class_list([value])
    return node if isinstance(node, int) else str(nfc(node))


def _check_depth(level: int, node: ClassValue) -> None:
    if level > MOST_LEVELS:
        raise InputError(
            f"tree has {quoted(node)} below more than {MOST_LEVELS - 1} others; leave out levels"
            " that nobody asks for"
        )
