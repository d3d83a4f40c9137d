"""The app of all verbs. They are named by path and import what they need when they run, so that
help stays quick.
"""

from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

from cyclopts import App, Parameter, Token, convert

from tacit.cli.settings import from_environment_and_file
from tacit.cli.verbs import VERBS
from tacit.compute.numbers import check_plain
from tacit.compute.remote import as_path
from tacit.version import __version__

FLAGS = ("--help", "--version", "--install-completion")


def _plain(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of an option; numbers are read in plain digits only, and a path may be a URL."""
    for token in tokens:
        if kind in (int, float):
            check_plain(token.value)
    if kind is Path:
        # of the text, since pathlib takes two slashes for one
        return as_path(tokens[0].value)
    return convert(kind, tokens)


def shown_default(value: Any) -> str | None:
    """A default as help shows it; that a flag is off, or a text empty, goes without saying."""
    return None if value is None or value is False or value == "" else str(value)


EPILOGUE = (
    "With any command: -q, --quiet shows no progress and no lines about what was written;"
    " -v, --verbose adds where options came from and how long the work took. Defaults of options"
    " that say where work is done come from TACIT_NAME in the environment, or from tacit.toml."
    " tacit help COMMAND is COMMAND --help."
)

app = App(
    name="tacit",
    help="Differentially private classifiers, with a true statement of their privacy cost.",
    help_epilogue=EPILOGUE,
    version=__version__,
    version_flags=("--version", "-V"),
    config=from_environment_and_file,
    default_parameter=Parameter(negative=(), converter=_plain, show_default=shown_default),
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
for number, (verb, summary) in enumerate(VERBS.items()):
    module = f"{verb}_" if iskeyword(verb) else verb.replace("-", "_")
    # what holds for every command is said once, in the help of all
    app.command(
        f"tacit.cli.{module}:{module}",
        name=verb,
        help=summary,
        sort_key=number,
        help_epilogue="",
    )
app.command(
    "tacit.cli.completion:install_completion",
    name=FLAGS[-1],
    help="Let the shell complete commands, methods, options and their values.",
    sort_key=len(VERBS),
)
