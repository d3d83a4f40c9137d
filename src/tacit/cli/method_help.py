"""The options of a command with those of one method, from the docstring of its class.

`tacit fit METHOD --help` prints them, and shells complete them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter
from docstring_parser import DocstringStyle, parse

from tacit.cli.app import shown_default
from tacit.cli.learner import COMMON, known_method
from tacit.learners.methods import METHODS, load


def print_method_help(verb: str, method: str) -> None:
    """Print the help of a command for one method: the options that apply, and its own with their
    defaults.
    """
    method = known_method(method)
    method_app(verb, method, name=f"tacit {verb} {method}").help_print([])


def method_app(verb: str, method: str, *, name: str) -> App:
    """A command as one method has it, to be described and completed, and never run."""
    kind, command = load(METHODS[method]), load(f"tacit.cli.{verb}:{verb}")
    group = Group(f"Parameters of {method}", sort_key=0)
    described = inspect.signature(command)
    shown = [
        _for_method(one, kind, verb) for one in described.parameters.values() if _applies(one, kind)
    ]
    for own, text, default in own_parameters(kind):
        if own in described.parameters:
            continue
        told = Parameter(
            help=text, group=group, show_default=default is not None, show_choices=False
        )
        form = _form(text)
        shown.append(
            inspect.Parameter(
                own,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[form, told],
            )
        )

    def page(*_: Any, **__: Any) -> None: ...

    page.__signature__ = described.replace(parameters=shown)  # type: ignore[attr-defined]
    page.__annotations__ = {one.name: one.annotation for one in shown}
    page.__doc__ = command.__doc__
    summary = inspect.getdoc(kind).splitlines()[0]  # type: ignore[union-attr]  # every method is documented
    app = App(name=name, help=summary, help_flags=(), version_flags=())
    app.default_parameter = Parameter(negative=(), show_default=shown_default)
    app.default(page)
    return app


def _form(text: str) -> Any:
    """The type of an option: one of the values that its description starts with in braces, if it
    does, or any text.
    """
    braces = re.match(r"\{(.*?)\}", text)
    return Literal[tuple(re.findall('"(.*?)"', braces[1]))] if braces else str


def own_parameters(kind: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, description and default of each option that the command line does not set itself."""
    for name in kind.flat_parameters():
        if name not in COMMON:
            described, field = kind.documented(name)
            text = described_as(described, field)
            default = next((one.default for one in fields(described) if one.name == field), None)
            yield name, text, None if default is MISSING else default


def described_as(kind: Any, name: str) -> str:
    """Type of a parameter and the first sentence about it in the docstring of a class, or of one
    that it refers to.
    """
    form, text = _parameters(kind)[name]
    referred = re.match(r"As (?:in|of) `(?:tacit\.)?(\w+)`", text)
    if referred is not None:
        return described_as(_class_named(referred[1]), name)
    sentence = re.split(r"(?<=\.) (?=[A-Z\"])", text.replace("`", ""), maxsplit=1)[0]
    return f"{form}: {sentence}" if form else sentence


def _parameters(kind: Any) -> dict[str, tuple[str, str]]:
    """Type and description of each parameter in the docstring of a class."""
    document = parse(inspect.getdoc(kind) or "", DocstringStyle.NUMPYDOC)
    described = {}
    for entry in document.params:
        # attributes are listed too
        if entry.args[0] == "param":
            text = " ".join((entry.description or "").split())
            for name in entry.arg_name.split(", "):
                described[name] = (entry.type_name or "", text)
    return described


def _class_named(name: str) -> Any:
    import tacit

    return getattr(tacit, name) if name in tacit.LAZY else getattr(tacit.pate, name)


def _for_method(option: inspect.Parameter, kind: Any, verb: str) -> inspect.Parameter:
    """An option of the command as the method has it: its units; `--public` with its use, required
    where needed.
    """
    if option.name == "unit":
        return option.replace(
            annotation=Annotated[option.annotation, Parameter(choices=tuple(kind.units))]
        )
    if option.name != "public":
        return option
    told = Parameter(
        help=f"Public data: a store's folder or a file ({kind.public_use.replace('`', '')})."
    )
    required = kind.needs_public and verb == "fit"
    default = inspect.Parameter.empty if required else option.default
    return option.replace(annotation=Annotated[option.annotation, told], default=default)


def _applies(option: inspect.Parameter, kind: Any) -> bool:
    """Whether an option of the command is for this method; its name is set already."""
    if option.name == "method" or option.kind is option.VAR_KEYWORD:
        return False
    if option.name in ("groups", "test"):
        return option.name in inspect.signature(kind.fit).parameters
    if option.name == "figures":
        return bool(kind.has_votes)
    needed = "public" if option.name == "public_split" else option.name
    return needed not in ("public", "names") or needed in kind.flat_parameters()
