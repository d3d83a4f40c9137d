"""Change one place of a module's syntax tree, found by a pattern that layout and private names do
not affect.

A pattern is Python code: one expression, or one or more statements that follow each other. It is
compared with the syntax tree, so line breaks, quotes, comments and blank lines do not matter.
Three rules say what else may differ:

- `...` matches any expression; as an argument it matches all other arguments, and as a statement
  all other statements.
- A name that may change without anybody noticing is matched by other names, as long as the same
  name stands for the same thing throughout: a local variable or parameter by any name in the
  pattern, and a name that begins with an underscore by any such name.
- All other names (imports, builtins, public functions, attributes and keywords) match only
  themselves.

In the replacement, a name stands for what it matched, and the k-th `...` for what the k-th of the
pattern matched; the replacement has as many as the pattern, or none.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

# fields of a node that hold a name
NAMES = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.FunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
}
# fields that do not matter: a name is read or set, and how a string was written
IGNORED = {"ctx", "kind", "type_comment", "type_ignores"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class NoSuchPlace(ValueError):
    """A pattern that matches no place or several, an address that does not exist, or an unknown
    name.
    """


@dataclass
class Match:
    """What the names and the `...` of a pattern stand for."""

    names: dict[str, str] = field(default_factory=dict)
    rests: list[Any] = field(default_factory=list)

    def copied(self) -> "Match":
        """A copy that a failed comparison may leave changed."""
        return Match(dict(self.names), list(self.rests))


@dataclass(frozen=True)
class Place:
    """A node, or statements that follow each other, in a list or field of its parent."""

    parent: ast.AST
    name: str
    start: int | None
    stop: int | None
    match: Match

    @property
    def nodes(self) -> list[ast.AST]:
        """The nodes that stand there."""
        value = getattr(self.parent, self.name)
        return [value] if self.start is None else value[self.start : self.stop]

    def replaced_by(self, nodes: list[ast.AST]) -> None:
        """Put these nodes there."""
        if self.start is None:
            (node,) = nodes
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.start : self.stop] = nodes


def is_rest(node: Any) -> bool:
    """Tell whether a node of a pattern is `...`."""
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def number_of_rests(text: str) -> int:
    """Count the `...` of a pattern or a replacement."""
    return sum(
        isinstance(node, ast.Constant) and node.value is Ellipsis
        for node in ast.walk(ast.parse(text))
    )


def is_private(name: str) -> bool:
    """Tell whether a name begins with an underscore and is not one of Python's own."""
    return name.startswith("_") and not name.startswith("__")


def bound_names(function: ast.AST) -> set[str]:
    """Names that a function binds: parameters, variables, and what functions inside bind."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(
            node, (ast.arg, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef)
        ):
            names.add(getattr(node, NAMES[type(node)]))
    own_name = getattr(function, "name", None)
    return names - {None, own_name}


@lru_cache(maxsize=256)
def public_names(module: ast.Module) -> frozenset[str]:
    """Names that keep their meaning in a whole module: builtins, imports, and what is defined at
    its top.
    """
    names = set(dir(builtins))
    for node in module.body:
        for part in ast.walk(node):
            if isinstance(part, ast.alias):
                names.add(part.asname or part.name.partition(".")[0])
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            names |= {
                part.id
                for part in ast.walk(node)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
    return frozenset(name for name in names if not is_private(name))


@dataclass
class Comparison:
    """Compare patterns with nodes inside one function, or outside all of them."""

    local: set[str]
    public: frozenset[str]

    def same_name(self, pattern: str | None, name: str | None, match: Match) -> bool:
        """Compare a name of the pattern with one of the code, and note what it stands for."""
        if pattern is None or name is None:
            return pattern is name
        if pattern in match.names:
            return match.names[pattern] == name
        if is_private(name):
            may_change = is_private(pattern)
        else:
            may_change = name in self.local and (
                pattern not in self.public or pattern in self.local
            )
        if pattern != name and not may_change:
            return False
        if name in match.names.values():
            return False
        match.names[pattern] = name
        return True

    def same(self, pattern: Any, node: Any, match: Match) -> bool:
        """Compare a pattern with a node; `match` is only right if they are the same."""
        if isinstance(pattern, list):
            return isinstance(node, list) and self.same_list(pattern, node, match)
        if not isinstance(pattern, ast.AST):
            return type(pattern) is type(node) and pattern == node
        if is_rest(pattern) and isinstance(node, ast.expr):
            match.rests.append(node)
            return True
        if type(pattern) is not type(node):
            return False
        if isinstance(pattern, ast.Call):
            return self.same_call(pattern, node, match)
        return all(
            self.same_field(name, value, node, match) for name, value in ast.iter_fields(pattern)
        )

    def same_field(self, name: str, value: Any, node: ast.AST, match: Match) -> bool:
        """Compare one field of a pattern with that of a node of its type."""
        if name in IGNORED:
            return True
        other = getattr(node, name)
        is_private_attribute = (
            isinstance(node, ast.Attribute) and name == "attr" and is_private(other)
        )
        if NAMES.get(type(node)) == name or is_private_attribute:
            return self.same_name(value, other, match)
        return self.same(value, other, match)

    def same_list(self, pattern: list[Any], nodes: list[Any], match: Match) -> bool:
        """Compare lists, of which `...` may stand for any part."""
        if not pattern:
            return not nodes
        if not is_rest(pattern[0]):
            return (
                bool(nodes)
                and self.same(pattern[0], nodes[0], match)
                and self.same_list(pattern[1:], nodes[1:], match)
            )

        for count in range(len(nodes) + 1):
            attempt = match.copied()
            attempt.rests.append(nodes[:count])
            if self.same_list(pattern[1:], nodes[count:], attempt):
                match.names = attempt.names
                match.rests = attempt.rests
                return True
        return False

    def same_call(self, pattern: ast.Call, call: ast.Call, match: Match) -> bool:
        """Compare calls: keywords in any order, and others too where an argument is `...`."""
        if not self.same(pattern.func, call.func, match) or not self.same(
            pattern.args, call.args, match
        ):
            return False

        rest = {keyword.arg: keyword for keyword in call.keywords}
        for keyword in pattern.keywords:
            other = rest.pop(keyword.arg, None)
            if other is None or not self.same(keyword.value, other.value, match):
                return False

        if any(map(is_rest, pattern.args)):
            match.rests.append(list(rest.values()))
            return True
        return not rest


class Replacement(ast.NodeTransformer):
    """Put what a pattern matched into the replacement."""

    def __init__(self, match: Match) -> None:
        self.match = match
        self.rests = list(match.rests)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        name = NAMES.get(type(node))
        if isinstance(node, ast.Attribute):
            name = "attr"
        if name:
            old = getattr(node, name)
            setattr(node, name, self.match.names.get(old, old))
        return super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        has_rest = any(map(is_rest, node.args))
        self.generic_visit(node)
        if has_rest:
            node.keywords += self.rests.pop(0)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        return self.rests.pop(0) if is_rest(node) else self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        return self.rests.pop(0) if is_rest(node) else node


def parsed(old: str, new: str) -> tuple[ast.expr | list[ast.stmt], list[ast.AST]]:
    """A pattern and its replacement, as expressions if both are one, else as statements."""
    pattern = ast.parse(old).body
    replacement = ast.parse(new).body
    for body in (pattern, replacement):
        if len(body) != 1 or not isinstance(body[0], ast.Expr) or is_rest(body[0]):
            return pattern, list(replacement)
    return pattern[0].value, [replacement[0].value]


def addressed(module: ast.Module, address: str) -> ast.AST:
    """The public function, class or method of this dotted name; the module if the name is empty."""
    node: ast.AST = module
    for name in address.split(".") if address else []:
        if is_private(name):
            raise NoSuchPlace(
                f"{name} is private and may be renamed; address what is public around it, or the"
                " module"
            )
        # a function inside another is local
        members = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
        named = [member for member in members if getattr(member, "name", None) == name]
        if len(named) != 1:
            raise NoSuchPlace(f"{address} is not defined")
        node = named[0]
    return node


def places(module: ast.Module, address: str, wanted: ast.expr | list[ast.stmt]) -> list[Place]:
    """Every place in the addressed part of a module that an expression or a run of statements
    matches.
    """
    public = public_names(module)

    def below(node: ast.AST, local: set[str]) -> Iterator[Place]:
        if isinstance(node, FUNCTIONS):
            local = local | bound_names(node)
        comparison = Comparison(local, public)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield from in_list(node, name, value, comparison)
            elif isinstance(value, ast.AST):
                match = Match()
                if isinstance(wanted, ast.expr) and comparison.same(wanted, value, match):
                    yield Place(node, name, None, None, match)
                yield from below(value, local)

    def in_list(
        node: ast.AST, name: str, values: list[Any], comparison: Comparison
    ) -> Iterator[Place]:
        for start, value in enumerate(values):
            for stop in range(start + 1, len(values) + 1):
                match = Match()
                nodes = values[start:stop] if isinstance(wanted, list) else value
                if comparison.same(wanted, nodes, match):
                    yield Place(node, name, start, stop, match)
                    break
                if isinstance(wanted, ast.expr):
                    break
        for value in values:
            if isinstance(value, ast.AST):
                yield from below(value, comparison.local)

    # no function is around it, since an address leads through classes alone
    return list(below(addressed(module, address), set()))


def unknown_names(module: ast.Module, old: str, new: str) -> set[str]:
    """Names that the replacement uses and that neither the pattern nor the module makes known."""
    tree = ast.parse(new)
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    in_pattern = {
        getattr(node, NAMES[type(node)]) for node in ast.walk(ast.parse(old)) if type(node) in NAMES
    }
    return read - in_pattern - bound_names(tree) - public_names(module)


def changed_place(
    module: ast.Module, address: str, old: str, new: str
) -> tuple[Place, list[ast.AST]]:
    """The one place that matches `old`, and the nodes of `new` to put there; the module is not
    changed.

    Raises
    ------
    NoSuchPlace
        If the address does not exist, the pattern does not match exactly one place, or the
        replacement changes nothing, has another number of `...` than the pattern, or uses a name
        that would stand for something else after a rename.
    """
    pattern, replacement = parsed(old, new)
    matches = places(module, address, pattern)
    if len(matches) != 1:
        raise NoSuchPlace(
            f"{old!r} matches {len(matches)} places of {address or 'the module'}; it must match one"
        )
    unknown = unknown_names(module, old, new)
    if unknown:
        raise NoSuchPlace(
            f"{new!r} uses {', '.join(sorted(unknown))}; only names of {old!r} are safe from a"
            " rename"
        )

    n_rests = number_of_rests(new)
    if n_rests not in (0, number_of_rests(old)):
        raise NoSuchPlace(f"{new!r} must have as many `...` as {old!r}, or none")

    (place,) = matches
    # a module holds the replacement, so that a `...` in it may become several nodes
    holder = Replacement(place.match).visit(ast.Module(replacement, []))
    if [*map(ast.unparse, map(ast.fix_missing_locations, holder.body))] == [
        *map(ast.unparse, place.nodes)
    ]:
        raise NoSuchPlace(f"{new!r} changes nothing")
    return place, holder.body


def mutated(source: str, address: str, old: str, new: str) -> str:
    """The source of a module with the one place that matches `old` replaced by `new`; raises as
    `changed_place`.
    """
    module = ast.parse(source)
    place, nodes = changed_place(module, address, old, new)
    place.replaced_by(nodes)
    return ast.unparse(ast.fix_missing_locations(module))
