"""Display of a learner's budget, unit and privacy cost in a notebook.

It stands beside scikit-learn's diagram.
"""

from __future__ import annotations

from html import escape
from typing import Any

from tacit.errors import TacitError
from tacit.privacy.guarantee import STATED_AT


def promise_html(learner: Any, budget: str) -> str:
    """Return a table of HTML: the guarantee of a fitted learner, or the promise of a fit.

    Where there is no promise, since a parameter is wrong, the table holds the error.
    """
    is_fitted = learner.__sklearn_is_fitted__()
    title = "Guarantee of this fit" if is_fitted else "Promise of a fit"
    try:
        guarantee = learner.guarantee_ if is_fitted else learner.promise()
        rows = {
            "budget": budget,
            "unit": f"{guarantee.unit}: hides {guarantee.unit.hidden}",
            "privacy cost": guarantee.figures(None, guarantee.delta or STATED_AT),
            "not protected": ", ".join(guarantee.unprotected)
            or "nothing beyond the public arguments",
            "covers": guarantee.scope,
        }
        if learner.noise == "research":
            rows["noise"] = f"{learner.noise}: not for release"
    except TacitError as error:
        rows = {"no promise": str(error)}
    cells = "".join(
        f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
        f'<td style="text-align: left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption>{title}</caption>{cells}</table>"
