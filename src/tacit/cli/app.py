"""The verbs. They are named by path and import what they need when they run, so that help stays
quick.
"""

from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

from cyclopts import App, Parameter, Token, convert

from tacit.compute.numbers import check_plain
from tacit.version import __version__

VERBS = {
    "demo": "Compare learners on imbalanced digits, then make, check and evaluate a real release.",
    "encode": "Make a store from pictures, texts or the columns of a table.",
    "schema": "Draft the schema of a table, by which its columns are encoded.",
    "overlap": "Look for private records among public rows.",
    "import": "Make a store from arrays or tables.",
    "split": "Deal a data set to a private, a public and a test store.",
    "subset": "Keep an imbalanced subset of a data set, for research.",
    "promise": "State what a fit will cost, before any data.",
    "fit": "Learn a private classifier and save it as a release.",
    "inspect": "Check a release and print its card.",
    "publish": "Write a release as a folder for a model hub, signed if a key is given.",
    "adapt": "Adapt an `auto` release to unlabelled data from the same task, if the data fit.",
    "evaluate": "Measure a release on a test set.",
    "predict": "Predict the class of every row, from a release alone.",
    "export": "Write a release as an ONNX file, which predicts without tacit.",
    "page": "Write a release as a page that shows what it reveals, and classifies.",
    "votes": "Turn the votes of teachers into labels, within every group's budget.",
    "privatize-labels": "Randomize the label column of a table.",
    "sweep": "Run an experiment plan; resumes if interrupted.",
    "results": "List the results of a sweep.",
    "report": "Draw the results of a sweep: a page, or a folder of figures.",
    "ledger": "Show what was spent on a data set, or state its allowance.",
}
FLAGS = ("--help", "--version", "--install-completion")


def _plain(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of an option; numbers are read in plain digits only."""
    for token in tokens:
        if kind in (int, float):
            check_plain(token.value)
    return convert(kind, tokens)


def shown_default(value: Any) -> str | None:
    """A default as help shows it; that a flag is off, or a text empty, goes without saying."""
    return None if value is None or value is False or value == "" else str(value)


app = App(
    name="tacit",
    help="Differentially private classifiers, with a true statement of their privacy cost.",
    version=__version__,
    default_parameter=Parameter(negative=(), converter=_plain, show_default=shown_default),
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
for number, (verb, summary) in enumerate(VERBS.items()):
    module = f"{verb}_" if iskeyword(verb) else verb.replace("-", "_")
    app.command(f"tacit.cli.{module}:{module}", name=verb, help=summary, sort_key=number)
app.command(
    "tacit.cli.completion:install_completion",
    name=FLAGS[-1],
    help="Let the shell complete commands, methods, options and their values.",
    sort_key=len(VERBS),
)
