"""Learners from text: a method's name and its options, which are the parameters of its class."""

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.options import CardFacts
from tacit.compute.numbers import check_plain
from tacit.errors import InputError, nearest
from tacit.learners.methods import (
    ALIASES,
    METHODS,
    SETTINGS,
    in_python,
    load,
    method_called,
    setting_called,
)

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.learners.common.base import PrivateClassifier

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")

COMMON = (
    "budget",
    "classes",
    "noise",
    "random_state",
    "unit",
    "ledger",
    "public",
    "allow_overlap",
    "names",
    "tree",
)
"""Parameters that options of the commands set."""


def known_method(name: str) -> str:
    """The name in METHODS of the method that is called `name`."""
    method = method_called(name)
    if method in METHODS:
        return method
    fault = in_python(name)
    if fault is not None:
        raise InputError(f"method {name!r} {fault}")

    setting = setting_called(name)
    if setting is None:
        raise InputError(
            f"method {name!r} is not known; {nearest(name.lower(), METHODS, *ALIASES, *SETTINGS)}"
        )
    flags = "".join(f" --{flag.replace('_', '-')} {value}" for flag, value in setting[1].items())
    raise InputError(
        f"method {name!r} is {setting[0]} with an option; did you mean {setting[0] + flags!r}?"
    )


def check_spelling(verb: str, tokens: Sequence[str]) -> None:
    """Refuse a method, or an option of it, that is not known, in a command line that may lack
    others.
    """
    if not tokens or tokens[0].startswith("-"):
        return
    method = known_method(tokens[0])
    command = load(f"tacit.cli.{verb}:{verb}")
    common = _common_options(command)

    options = [token[2:].partition("=")[0] for token in tokens if token.startswith("--")]
    others = [option for option in options if option.replace("-", "_") not in common]
    check_options(command, method, others)


def _common_options(command: Callable[..., None]) -> list[str]:
    """List the options that a command has for every method."""
    parameters = inspect.signature(command).parameters.values()
    keywords = [item.name for item in parameters if item.kind is item.KEYWORD_ONLY]
    return [*keywords, *(field.name for field in fields(CardFacts))]


def check_options(command: Callable[..., None], method: str, options: Iterable[str]) -> None:
    """Refuse what is neither an option of the command nor a parameter of the method."""
    learner_class = load(METHODS[method])
    of_method = [name for name in learner_class.flat_parameters() if name not in COMMON]
    for option in options:
        if option.replace("-", "_") in of_method:
            continue
        if option.replace("-", "_") == "most_labels":
            reason = _with_names_of_methods(learner_class.one_label)
            raise InputError(f"--most-labels does not apply: {method} {reason}")
        names = [name.replace("_", "-") for name in (*of_method, *_common_options(command))]
        close_names = get_close_matches(option, names, n=1)
        if close_names:
            remedy = f"did you mean --{close_names[0]}?"
        else:
            listed = ", ".join(f"--{name}" for name in names[: len(of_method)]) or "none"
            remedy = f"beyond the common ones it has: {listed}"
        raise InputError(f"--{option} is not an option of {method}; {remedy}")


def _with_names_of_methods(text: str) -> str:
    """Return a text with the names of methods on the command line in place of classes.

    >>> _with_names_of_methods("learn with GradientDescent or AutoPrototypes")
    'learn with gradient-descent or auto'
    """
    for name, place in METHODS.items():
        class_name = place.partition(":")[2]
        text = re.sub(rf"\b{class_name}\b", name, text)
    return text


def make_learner(
    method: str, options: dict[str, str], *, seed: int | None = None, **common: Any
) -> "PrivateClassifier":
    """The learner of a method in METHODS.

    `options` are the method's parameters as text, as `check_options` lets them pass. `common` are
    those in COMMON, where None stands for the default. The seed is that of research noise, and of a
    method's public choices.
    """
    learner_class = load(METHODS[method])
    accepted = learner_class.flat_parameters()
    common = {name: value for name, value in common.items() if value is not None}
    if "budget" in common and "budgets" in options:
        raise InputError(
            f"--budget {common['budget']} and --budgets {options['budgets']} are both given; give"
            " only one"
        )
    if "budget" not in common and "budgets" not in options:
        raise InputError("--budget is missing; give --budget rho=0.5, or epsilon=1,delta=1e-6")

    for name in ("public", "allow_overlap", "names"):
        if name in common and name not in accepted:
            raise InputError(f"--{name.replace('_', '-')} does not apply to {method}; leave it out")

    values = {option.replace("-", "_"): literal(text) for option, text in options.items()}
    if seed is not None and common["noise"] == "research":
        values["random_state"] = seed
    if seed is not None and "seed" in accepted:
        values["seed"] = seed
    elif seed is not None and common["noise"] != "research":
        warnings.warn(
            f"--seed {seed} is ignored: {common['noise']} noise has no seed", stacklevel=2
        )

    learner: PrivateClassifier = learner_class.of_flat(**values, **common)
    return learner


def check_public(method: str, public: Path | None) -> None:
    """Refuse a method without the public rows that it cannot do without."""
    if public is None and load(METHODS[method]).needs_public:
        raise InputError(
            f"--public is missing, and the method {method} needs public rows; give --public STORE"
        )


def check_releasable(learner: Any, allow_research: bool) -> None:
    """Refuse a bad budget, and what could not be saved, before any data is read or charged."""
    if not learner.releasable():
        raise InputError(f"{type(learner).__name__} {learner.no_release}")
    check_protects(learner, allow_research)


def check_protects(learner: Any, allow_research: bool) -> None:
    """Refuse a bad budget, and what would be stamped, unless this is allowed."""
    reason = None
    if learner.noise == "research":
        reason = f"--noise {learner.noise} is seeded"
    if not learner.promise().bounded:
        reason = "an infinite budget protects nothing"
    if reason is not None and not allow_research:
        raise InputError(
            f"{reason}, so this is not for release; change it, or add --allow-research to keep it"
            " stamped so"
        )


def check_most_labels(learner: Any, method: str, data: "Data", store: Path, classes: Any) -> None:
    """Refuse several labels a record without `--most-labels`, or without a class list, and
    `--most-labels` for data with one label a record.
    """
    if data.labels is None:
        return
    if not data.several:
        if learner.most_labels is not None:
            fault = f"--most-labels {learner.most_labels} is for records with several labels"
            raise InputError(
                f"{fault}, and those of {store} have one each; leave it out, or name what separates"
                " the labels of a text with --label-separator"
            )
        return
    fault = f"{store} has several labels a record"
    if not learner.takes_several_labels:
        raise InputError(f"{fault}, and {method} {_with_names_of_methods(learner.one_label)}")
    if learner.most_labels is None:
        raise InputError(
            f"{fault}; declare how many of them count at most, from public knowledge, with"
            " --most-labels 2 or the like"
        )
    if classes is None:
        raise InputError(f"{fault}, whose list must be declared; give --classes FILE")


def check_folder(folder: Any, out: Path, *data: Path | None, option: str = "folder") -> None:
    """Refuse a private folder, such as that of a checkpoint, that lies in a store, or in the
    release, or around it.
    """
    if not isinstance(folder, str | Path) or not str(folder):
        return
    private = Path(folder).resolve()
    release = out.resolve()
    if private == release or private in release.parents or release in private.parents:
        raise InputError(
            f"--{option} {folder} and --out {out} lie in one another; give two separate folders"
        )
    for store in data:
        if store is not None and store.resolve() in (private, *private.parents):
            raise InputError(
                f"--{option} {folder} lies in {store}, which holds data; choose a folder outside"
                " of it"
            )


def literal(text: str) -> Any:
    """A Python literal, true or false, or a dict of literals written a=1,b=2, or else the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text)
        if not isinstance(value, str):
            check_plain(_QUOTED.sub("", text))
        return value
    except (ValueError, SyntaxError):
        pairs = [item.partition("=") for item in text.split(",")]
        names = {name for name, equals, _ in pairs if name and equals}
        if len(names) < len(pairs):
            return text
        return {name.strip(): literal(value) for name, _, value in pairs}
