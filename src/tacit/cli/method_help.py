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
    learner_class = load(METHODS[method])
    command = load(f"tacit.cli.{verb}:{verb}")
    signature = inspect.signature(command)
    group = Group(f"Parameters of {method}", sort_key=0)

    options = []
    for option in signature.parameters.values():
        if _applies(option, learner_class):
            options.append(_for_method(option, learner_class, verb))
    for parameter, text, default in own_parameters(learner_class):
        if parameter not in signature.parameters:
            options.append(_method_option(parameter, text, default, group))

    # cyclopts reads options off a function.
    def page(*_: Any, **__: Any) -> None: ...

    page.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    page.__annotations__ = {option.name: option.annotation for option in options}
    page.__doc__ = command.__doc__

    # Every method is documented.
    summary = inspect.getdoc(learner_class).splitlines()[0]  # type: ignore[union-attr]
    app = App(name=name, help=summary, help_flags=(), version_flags=())
    app.default_parameter = Parameter(negative=(), show_default=shown_default)
    app.default(page)
    return app


def _method_option(name: str, text: str, default: Any, group: Group) -> inspect.Parameter:
    """An option for a parameter of a method, in the group of that method."""
    facts = Parameter(help=text, group=group, show_default=default is not None, show_choices=False)
    option_type = _option_type(text)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[option_type, facts],
    )


def _option_type(text: str) -> Any:
    """Return the type of an option: one of the values in braces with which its description starts,
    or any text.
    """
    braces = re.match(r"\{(.*?)\}", text)
    if braces is None:
        return str
    values = re.findall('"(.*?)"', braces[1])
    return Literal[tuple(values)]


def own_parameters(learner_class: Any) -> Iterator[tuple[str, str, Any]]:
    """Name, description and default of each option that the command line does not set itself."""
    for name in learner_class.flat_parameters():
        if name in COMMON:
            continue
        documented_class, field_name = learner_class.documented(name)
        text = described_as(documented_class, field_name)

        # None stands for no default, as a required parameter has none to show.
        default = None
        for field in fields(documented_class):
            if field.name == field_name and field.default is not MISSING:
                default = field.default
        yield name, text, default


def described_as(kind: Any, name: str) -> str:
    """Type of a parameter and the first sentence about it in the docstring of a class, or of the
    class to which that docstring refers by "As in `CLASS`".
    """
    type_name, text = _parameters(kind)[name]
    reference = re.match(r"As (?:in|of) `(?:tacit\.)?(\w+)`", text)
    if reference is not None:
        return described_as(_class_named(reference[1]), name)

    # A sentence ends at a full stop before a capital letter, or before a quoted value.
    sentence = re.split(r"(?<=\.) (?=[A-Z\"])", text.replace("`", ""), maxsplit=1)[0]
    if not type_name:
        return sentence
    return f"{type_name}: {sentence}"


def _parameters(kind: Any) -> dict[str, tuple[str, str]]:
    """Type and description of each parameter in the docstring of a class."""
    document = parse(inspect.getdoc(kind) or "", DocstringStyle.NUMPYDOC)
    parameters = {}
    for entry in document.params:
        # The parser lists attributes too.
        if entry.args[0] != "param":
            continue
        text = " ".join((entry.description or "").split())
        # An entry may describe several parameters: "x, y : array".
        for name in entry.arg_name.split(", "):
            parameters[name] = (entry.type_name or "", text)
    return parameters


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

    use = kind.public_use.replace("`", "")
    facts = Parameter(help=f"Public data: a store's folder or a file ({use}).")
    is_required = kind.needs_public and verb == "fit"
    default = inspect.Parameter.empty if is_required else option.default
    return option.replace(annotation=Annotated[option.annotation, facts], default=default)


def _applies(option: inspect.Parameter, kind: Any) -> bool:
    """Return true if an option of the command is for this method, whose name is set already."""
    if option.name == "method" or option.kind is option.VAR_KEYWORD:
        return False
    if option.name in ("groups", "test"):
        return option.name in inspect.signature(kind.fit).parameters
    if option.name == "figures":
        return bool(kind.has_votes)

    # Options of public rows and of class names are for methods that use them.
    if option.name in ("public", "public_split"):
        return "public" in kind.flat_parameters()
    if option.name == "names":
        return "names" in kind.flat_parameters()
    return True
