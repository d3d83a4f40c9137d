"""Options that several commands share, each with its help."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from tacit.compute.remote import RemotePath, as_path
from tacit.errors import InputError
from tacit.learners.methods import METHODS
from tacit.privacy import unit


def _of_this_machine(kind: Any, tokens: Sequence[Token]) -> Any:
    """The path of an output, which is no URL."""
    path = as_path(tokens[0].value)
    if isinstance(path, RemotePath):
        raise InputError(
            f"{path} is a URL, and outputs are written to this machine; give a path, and copy it"
        )
    return path


Method = Annotated[
    str,
    Parameter(
        help=f"One of: {', '.join(METHODS)}. Published names, such as dppl-mean, are understood."
    ),
]
Budget = Annotated[
    str | None,
    Parameter(
        help=(
            "epsilon=1, rho=0.5, epsilon=1,delta=1e-6, mu=1 or tpr=0.1@fpr=0.01. Methods with"
            " budget groups take --budgets a=1,b=2 instead."
        )
    ),
]
Unit = Annotated[
    unit.Unit | None,
    Parameter(
        help=(
            "The unit in which the budget is read; by default the method's own. Those of persons"
            " need ids of persons."
        )
    ),
]
AuditBudget = Annotated[
    str | None,
    Parameter(
        help=(
            "For a method: epsilon=1, rho=0.5, epsilon=1,delta=1e-6, mu=1 or tpr=0.1@fpr=0.01; by"
            " default the method's own."
        )
    ),
]
PriceBudget = Annotated[
    str | None,
    Parameter(
        help=(
            "What may be spent of the test rows: epsilon=1, rho=0.5, epsilon=1,delta=1e-6, mu=1 or"
            " tpr=0.1@fpr=0.01."
        )
    ),
]
PriceUnit = Annotated[
    unit.Unit | None,
    Parameter(
        help=(
            "The unit in which the budget is read; by default add-remove. Those of persons need"
            " ids of persons."
        )
    ),
]
Noise = Annotated[
    Literal["secure", "opendp", "research"],
    Parameter(
        help=(
            "opendp draws Gaussian and Laplace noise by the library OpenDP, which takes far longer."
            " Research noise is seeded and not for release."
        )
    ),
]
Persons = Annotated[
    str | None,
    Parameter(
        help=(
            "Person id of each row: a file with one id per line, an .npy array, or a table with"
            " FILE#COLUMN, else the name of a column or array of the data. A store may carry ids."
            " They are private, and shown nowhere. Spellings that differ by white space at the"
            " ends, Unicode form or .0 are one person."
        )
    ),
]
Features = Annotated[
    str | None, Parameter(help="Name of the features inside the file, where it is not a usual one.")
]
Labels = Annotated[
    str | None, Parameter(help="Name of the labels inside the file, where it is not a usual one.")
]
LabelMeaning = Annotated[
    Literal["value", "index"],
    Parameter(
        help=(
            "Meaning of whole numbers as labels beside a list of class names: index for positions"
            " in the list, from 0. A card, a ClassLabel and NAME_targets.npy mean positions by"
            " themselves."
        )
    ),
]
LabelSeparator = Annotated[
    str | None,
    Parameter(
        help=(
            'What separates the labels of a record in a column of texts, such as "|", where'
            " records may have several labels; a record without text has none."
        )
    ),
]
Split = Annotated[
    str | None, Parameter(help="Which split of a folder or .npz file that has several.")
]
AnyEncoder = Annotated[
    bool,
    Parameter(
        help=(
            "Take rows whose encoder, by name, revision, hash or recipe, is not the one that the"
            " release states."
        )
    ),
]
Json = Annotated[bool, Parameter(help="Print one JSON object instead of lines.")]
Out = Annotated[Path, Parameter(alias="-o", converter=_of_this_machine)]
MaybeOut = Annotated[Path | None, Parameter(alias="-o", converter=_of_this_machine)]
Force = Annotated[bool, Parameter(help="Overwrite the output.")]


@Parameter(name="*")
@dataclass(frozen=True)
class CardFacts:
    """Facts about the product on the card of a release.

    Parameters
    ----------
    name
        Name of the product, for the card.
    curator
        Who publishes it, for the card.
    description
        What it is, for the card.
    intended_use
        What it is for, for the card.
    """

    name: str | None = None
    curator: str | None = None
    description: str | None = None
    intended_use: str | None = None
