"""The page of the demonstration: a release, its privacy cost and the comparisons of `demo.py`.

It is written for somebody who sees tacit for the first time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from statistics import median

from tacit.experiments.results import Result
from tacit.learners.prototypes.noisy_sum import NoisySumPrototypes
from tacit.models.metrics import Scores
from tacit.privacy.decimals import rounded_up
from tacit.privacy.guarantee import STATED_AT
from tacit.releases.release import Release
from tacit.report import attack, charts
from tacit.report.accuracy import BALANCED, MINORITY, both_measures
from tacit.report.captions import NOISE
from tacit.report.card import card_html
from tacit.report.demo import IMBALANCE, WORTH_RHO, Digits
from tacit.report.figure import Figure
from tacit.report.groups import grouped
from tacit.report.html import chart_blocks, figure_place
from tacit.report.page import asset, data_block, page, table, text
from tacit.report.theme import PAGE

# Texts of the page. `{out}` is the folder of the demonstration; others name a number.
_LEAD = """<p class="lead">tacit summed {records} private digit images by class and added noise;
the noisy sums are a classifier that may be published. Classes have {smallest} to {largest} images.
Another {public} unlabelled images are public and cost no privacy.</p>"""
_COMPARED = """<p>Each point is the median of {seeds} fits. On private data every one of these fits
would cost budget; these digits are public. With private records choose the method beforehand:
<code>auto</code> is the one to begin with where there are public rows.</p>"""
_WORTH = """<p>At rho = {rho} (epsilon = {epsilon}) the method <code>auto</code> learns from
public rows how digits vary, and so needs less of the private sums. Small classes gain most. Rows
of class names help too, where the encoder reads texts: <code>tacit fit auto --names</code>.</p>"""

# Commands with the release of the demonstration, and commands with other data. Comments stand in
# one column of the page.
_AFTER = (
    "tacit inspect {out}/release                         "
    "# the card, after all hashes were checked\n"
    "tacit page {out}/release --out release.html         "
    "# a page that classifies files in the browser\n"
    "tacit predict {out}/release {out}/stores/test --out labels.csv\n"
    "tacit fit auto {out}/stores/private --public {out}/stores/public --classes 10"
    " --budget rho=0.1 --out cheaper"
)
_OWN_DATA = """<p>With data of your own: <code>classes.txt</code> lists the classes, one a line,
from public knowledge such as a form, not from the private labels.</p>"""
_OWN = (
    "tacit encode pictures --encoder timm:vit_small_patch14_dinov2"
    " --classes classes.txt --out private\n"
    "tacit import rows.npy labels.npy --classes classes.txt --out private             "
    "# or embeddings that you have\n"
    "tacit ledger private --allow BUDGET                                              "
    "# what may be spent in all\n"
    "tacit fit auto private --public public --classes classes.txt --budget rho=0.5 --out release\n"
    "tacit publish release --to hub"
)


def demo_page(
    data: Digits,
    results: Sequence[Result],
    worth: Sequence[Result],
    release: Release,
    scores: Scores,
    out: str,
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    data : Digits
    results : sequence of Result
        Of `compare`.
    worth : sequence of Result
        Of `worth_of_public_rows`.
    release : Release
    scores : Scores
        Of the release on the test rows.
    out : str
        The folder of the demonstration, for the commands that the page shows.
    """
    figure = _comparison(results)
    n_seeds = len({result.seed for result in results})
    sizes = data.records.sizes
    lead = _LEAD.format(
        records=len(data.records.y),
        largest=sizes.max(),
        smallest=sizes.min(),
        public=len(data.public),
    )
    comparison = _COMPARED.format(seeds=n_seeds) + figure_place(figure) + _accuracy_tables(results)
    next_steps = "<p>With this release:</p>" + text(_AFTER.format(out=out)) + _OWN_DATA + text(_OWN)
    sections = [
        ("", lead),
        ("What came out", _facts(results, release, scores)),
        ("Which method, at which privacy cost", comparison),
        ("What public rows are worth", _worth(worth)),
        ("What an attacker may learn", attack.section(release.guarantee)),
        ("The card of the release", card_html(release.card())),
        ("What to do next", next_steps),
    ]

    blocks = data_block("release", {"attack": attack.data(release.guarantee)})
    blocks += f"<script>{asset('attack.js')}</script>"
    blocks += chart_blocks({figure.name: charts.lines(figure, PAGE).to_dict(validate=False)})
    return page("tacit: a demonstration on digits", sections, blocks=blocks)


def _comparison(results: Sequence[Result]) -> Figure:
    """Return the figure of all methods at all budgets.

    It is drawn against rho, since new readers do not know the papers' epsilon.
    """
    figure = both_measures(results, f"Digits, imbalance ratio {IMBALANCE:g}", of_rho=True)
    caption = (
        "The band spans the 25 to 75 % quantiles. Thin dashes: the same methods without privacy."
        f" {NOISE}"
    )
    return replace(figure, name="accuracy", caption=caption)


def _facts(results: Sequence[Result], release: Release, scores: Scores) -> str:
    """Return what the release reaches and costs, in numbers and words."""
    # every fit of the demonstration has an accuracy; only the type of a result permits None
    without_privacy = median(
        result.balanced_accuracy or 0
        for result in results
        if result.learner == "auto" and result.rho == math.inf
    )
    epsilon = release.guarantee.epsilon(STATED_AT)
    facts = {
        "Digits labelled rightly, on average over classes": f"{100 * scores.balanced:.0f} of 100",
        "The same method without privacy": f"{100 * without_privacy:.0f} of 100",
        f"Privacy cost: epsilon at delta = {STATED_AT:g}": rounded_up(epsilon, 3),
    }
    entries = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>" for name, fact in facts.items()
    )
    return f'<dl class="facts">{entries}</dl><p>{escape(release.guarantee.in_words())}</p>'


def _accuracy_tables(results: Sequence[Result]) -> str:
    """Return a table for each measure: a row for each rho, medians over seeds by method."""
    learners = list(dict.fromkeys(result.learner for result in results))
    captions = {BALANCED: "Balanced accuracy", MINORITY: "Accuracy on the smallest classes"}
    tables = ""
    for measure, caption in captions.items():
        rows = []
        for (rho,), group in grouped(results, "rho"):
            medians = [_median(group, measure, learner) for learner in learners]
            rows.append([rounded_up(rho), _epsilon_text(rho), *medians])
        tables += f"<div>{table(['rho', 'epsilon', *learners], rows, caption)}</div>"

    # the delta is STATED_AT
    note = (
        "Epsilon at delta = 1e-6, for the methods that use Gaussian noise (all but"
        " <code>public</code>)."
    )
    return f'<div class="columns numbers">{tables}</div><p class="soft">{note}</p>'


def _median(results: Sequence[Result], measure: str, learner: str) -> str:
    """Return the median accuracy of a learner, as .912, without the zero before the point."""
    accuracies = [getattr(result, measure) for result in results if result.learner == learner]
    return f"{median(accuracies):.3f}".lstrip("0")


def _epsilon_text(rho: float) -> str:
    """Return epsilon of a method with Gaussian noise at a budget of rho, in three digits."""
    if rho == math.inf:
        return "none"

    # it depends on the budget alone, so no fit is needed, and any such method will do
    guarantee = NoisySumPrototypes(f"rho={rho}").promise()
    return rounded_up(guarantee.epsilon(STATED_AT), 3)


def _worth(worth: Sequence[Result]) -> str:
    """Return the words and the table on what public rows are worth."""
    rows = []
    for learner in dict.fromkeys(result.learner for result in worth):
        balanced = _median(worth, BALANCED, learner)
        minority = _median(worth, MINORITY, learner)
        rows.append([learner, balanced, minority])

    header = ["method", "balanced", "smallest classes"]
    numbers = table(header, rows, "Accuracy by what public rows are used for")

    words = _WORTH.format(rho=rounded_up(WORTH_RHO), epsilon=_epsilon_text(WORTH_RHO))
    return f'{words}<div class="numbers">{numbers}</div>'
