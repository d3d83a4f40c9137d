"""Defaults of options from environment variables `TACIT_NAME` and from `tacit.toml` in the working
folder.

Only options that say where and how work is done, or how its results look, are taken from there.
Budget, unit, noise, ledger and everything else that changes a release are given in the command
itself, so that a command means the same on every machine.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InputError, nearest

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import ArgumentCollection

PREFIX = "TACIT_"
FILE = Path("tacit.toml")
ALLOWED = (
    "address",
    "cluster",
    "data",
    "device",
    "engine",
    "format",
    "jobs",
    "json",
    "minutes",
    "mirror",
    "mlflow",
    "partition",
    "workers",
)
"""Options that say where work is done and how results look."""

used: list[str] = []
"""What the last command took from the environment or the file, for `--verbose`."""


def from_environment_and_file(
    app: "App", commands: tuple[str, ...], arguments: "ArgumentCollection"
) -> None:
    """Give options that the command line leaves out their value in the environment, or else in
    `tacit.toml`.

    cyclopts calls it before each command; its parameters are those of cyclopts' `config`.
    """
    from cyclopts import Token

    used.clear()
    verb = commands[0] if commands else ""
    settings = {**_of_file(verb), **_of_environment()}
    for argument in arguments:
        name = argument.name.removeprefix("--")
        if name not in settings or argument.tokens:
            continue
        value, source = settings[name]
        argument.append(Token(keyword=source, value=value, source=source))
        used.append(f"--{name} {value} ({source})")


def _of_environment() -> dict[str, tuple[str, str]]:
    """Value and source of each option that the environment sets."""
    settings = {}
    for variable, value in os.environ.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        _check_allowed(name, f"the environment variable {variable} sets --{name}")
        settings[name] = (value, variable)
    return settings


def _of_file(verb: str) -> dict[str, tuple[str, str]]:
    """Value and source of each option that `tacit.toml` sets for a command."""
    if not FILE.is_file():
        return {}
    try:
        document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{FILE} is not readable as TOML ({error}); correct or remove it"
        ) from None
    return {name: (value, str(FILE)) for name, value in _entries(document, verb)}


def _entries(document: dict[str, Any], verb: str) -> Iterator[tuple[str, str]]:
    """Options for every command, then those in the table of this command; all are checked."""
    from tacit.cli.verbs import VERBS

    of_verb: list[tuple[str, str]] = []
    for name, value in document.items():
        if not isinstance(value, dict):
            _check_allowed(name, f"{FILE} sets {name}")
            yield name, _as_text(value)
            continue
        if name not in VERBS:
            raise InputError(f"{FILE} has a table [{name}]; {nearest(name, VERBS)}")
        for option, setting in value.items():
            _check_allowed(option, f"{FILE} sets {option} in [{name}]")
            if name == verb:
                of_verb.append((option, _as_text(setting)))
    yield from of_verb


def _as_text(value: Any) -> str:
    """A value of TOML as the command line would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _check_allowed(name: str, where: str) -> None:
    if name not in ALLOWED:
        raise InputError(
            f"{where}, which only a command may; take it out, and give it in the command"
            f" (from there are taken: {', '.join(ALLOWED)})"
        )
