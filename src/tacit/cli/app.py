"""The verbs. They are named by path and import what they need when they run, so that help stays quick."""

from keyword import iskeyword

from cyclopts import App, Parameter

from tacit import __version__

VERBS = ("demo", "import", "promise", "fit", "inspect", "evaluate", "predict", "ledger")

app = App(
    name="tacit",
    help="Differentially private classifiers, with a true statement of their price.",
    version=__version__,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
for verb in VERBS:
    module = f"{verb}_" if iskeyword(verb) else verb
    app.command(f"tacit.cli.{module}:{module}", name=verb, sort_key=VERBS.index(verb))
