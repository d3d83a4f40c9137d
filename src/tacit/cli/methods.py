"""`tacit methods`: the methods that `tacit fit` knows."""

from tacit.cli.common import say
from tacit.cli.json_output import print_json
from tacit.cli.options import Json


def methods(*, json: Json = False) -> None:
    """List the methods that learn, and what each releases.

    `tacit fit METHOD --help` describes one of them.
    """
    from tacit.learners.methods import ALIASES, METHODS, load

    listed = []
    for name, path in METHODS.items():
        learner_class = load(path)
        listed.append(
            {
                "method": name,
                "class": f"tacit.{learner_class.__name__}",
                "releases": learner_class.summary,
                "needs_public": learner_class.needs_public,
                "budgets": list(learner_class.budget_kinds),
                "units": [unit.value for unit in learner_class.units],
                "published_names": [alias for alias, method in ALIASES.items() if method == name],
            }
        )
    if json:
        print_json({"methods": listed})
        return

    width = max(len(facts["method"]) for facts in listed)
    for facts in listed:
        public = "; needs public rows" if facts["needs_public"] else ""
        say(f"{facts['method']:{width}}  {facts['releases']}{public}")
    say("tacit fit METHOD --help describes one")
