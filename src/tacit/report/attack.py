"""Success of attackers on a release, as HTML: sliders, the trade-off curve, and the numbers of the
guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

from tacit.privacy.guarantee import DELTAS, Guarantee, rounded_up
from tacit.privacy.unit import Unit

# false-positive rates at the positions of the slider
RATES = (
    0.0001,
    0.0002,
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.03,
    0.05,
    0.07,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
)

# false-positive rates of a picture without a slider, beside those that every release states
PICTURE_RATES = (0.0001, 0.03, 0.2, 0.4)

# steps of a curve in closed form
N_STEPS = 100

# position of the slider before it is moved
FIRST_RATE = RATES.index(0.01)

# The picture has a frame of 100 by 100, in percent; its y axis points down.
_PICTURE = """<svg class="tradeoff" viewBox="-12 -4 116 120" role="img"
aria-label="Highest rate of detection for each rate of false alarms">
<rect class="frame" width="100" height="100"/><line class="blind" x1="0" y1="100" x2="100" y2="0"/>
{curve}
<text x="0" y="106">0</text><text x="94" y="106">100</text>
<text x="20" y="113">false alarms, %</text>
<text x="-9" y="3">100</text><text x="-4" y="100">0</text>
<text x="3" y="6">detection, %</text></svg>"""

# drawn by the script
_MOVING_CURVE = """<polyline class="curve" id="curve"/><circle class="mark" id="mark" r="2.2"/>"""

_ATTACK = """<p>{question} The attack looks at the release and raises an alarm or not. Choose how
often it raises a false alarm, and how strong the suspicion was before.</p>
<div class="columns"><div>
<label for="rate">False alarms: <output id="rate-value" for="rate"></output></label>
<input type="range" id="rate" min="0" max="{last}" step="1" value="{first}">
<label for="prior">Suspicion before: <output id="prior-value" for="prior"></output></label>
<input type="range" id="prior" min="1" max="99" step="1" value="50">
<p aria-live="polite">If {case}, {attack} detects it {most}<strong id="found"></strong> of the
time. {Most}<strong id="belief"></strong> of {alarms} are correct.</p>
<p>At any rate of false alarms, the rate of detection is at most {advantage} percentage points
higher.</p>
<p class="soft">{source}</p></div>
<div>{picture}
<p class="soft">The solid line is the most that an attack reaches; the dashed line is a blind
guess.</p></div></div>
<div class="wide" tabindex="0" role="region" aria-label="Privacy parameters"><table>
<caption>The guarantee in numbers, under unit {unit}</caption>{numbers}</table></div>"""

# Sentences on how the curve was computed: for Gaussian noise; for no use of private records; for
# bounds that some attack reaches; for all others.
_EXACT = (
    "This release is protected by Gaussian noise of mu = {mu}: the line is exact, and this page"
    " computes it."
)
_NOTHING = (
    "No private record decided anything in this release, so no attack does better than a blind"
    " guess."
)
_ATTAINED = """The best attack reaches these numbers. They are computed from the recorded events
beforehand, at each position of the slider; between them the line only guides the eye."""
_BOUNDED = """This guarantee has no closed form. The numbers are computed from the recorded events
beforehand, at each position of the slider; between them the line only guides the eye."""


# what an attack is asked: under most units, and under those that hide labels alone
_QUESTION = "Suppose an attacker knows everything else and asks whether {sentence}."
_QUESTIONS = {
    Unit.CHANGE_LABEL: (
        "Suppose an attacker knows everything but the label of one record, and suspects one of "
        "two labels."
    ),
    Unit.CHANGE_LABELS_OF_PERSON: (
        "Suppose an attacker knows everything but the labels of one person's records, and "
        "suspects one of two sets of labels."
    ),
}
# the case that an attack detects, under the units whose question is whether somebody is in the data
_CASES = {
    Unit.ADD_REMOVE: "the record is in the data",
    Unit.ADD_REMOVE_PERSON: "the person is in the data",
}


def percent_up(share: float) -> str:
    """Return a bound in tenths of a percent, rounded up, as `percentUp` of the script does."""
    # the factor undoes the rounding of floats, which may put a product just above a whole number
    tenths = math.ceil(1000 * share * (1 - 1e-12))
    return f"{tenths / 10:.1f}%"


def data(guarantee: Guarantee) -> dict[str, Any]:
    """Return the numbers from which the script computes the curve.

    These are mu if the curve is Gaussian, else the highest rate of detection at each of RATES.
    """
    mu = exact_mu(guarantee)
    detection_rates = []
    if mu is None:
        detection_rates = [guarantee.attack_rate(rate) for rate in RATES]
    return {"mu": mu, "rates": RATES, "bounds": detection_rates}


def exact_mu(guarantee: Guarantee) -> float | None:
    """Return the mu whose Gaussian trade-off curve is that of the guarantee.

    Returns None if the curve of the guarantee has another form.
    """
    # Gaussian curves compose to a Gaussian curve, so each single event must have one. Without any
    # event mu is 0.
    for total in guarantee.totals():
        for event, _ in total.base().counted():
            if not event.exact_mu:
                return None
    return guarantee.mu


def curve(
    guarantee: Guarantee, stated: Sequence[tuple[float, float]] = ()
) -> list[tuple[float, float]]:
    """Return points of the trade-off curve: rates of false alarms and of detection.

    A curve without closed form takes a while, so it has few points: those that a release has
    `stated`, and those at PICTURE_RATES.
    """
    normal = NormalDist()
    mu = exact_mu(guarantee)
    if mu is None:
        inner = [(rate, guarantee.attack_rate(rate)) for rate in PICTURE_RATES]
        points = sorted([*stated, *inner])
        return [(0.0, points[0][1]), *points, (1.0, 1.0)]

    # more points near 0, where the curve is steep
    rates = [(i / N_STEPS) ** 2 for i in range(1, N_STEPS)]
    inner = [(rate, normal.cdf(normal.inv_cdf(rate) + mu)) for rate in rates]
    return [(0.0, 0.0), *inner, (1.0, 1.0)]


def picture(
    points: Sequence[tuple[float, float]], marked: Sequence[tuple[float, float]] = ()
) -> str:
    """Return a picture of a curve that needs no script, with some of its points marked."""
    line = " ".join(f"{100 * x:.2f},{100 - 100 * y:.2f}" for x, y in points)
    drawn = f'<polyline class="curve" points="{line}"/>'
    for x, y in marked:
        drawn += f'<circle class="mark" cx="{100 * x:.2f}" cy="{100 - 100 * y:.2f}" r="2.2"/>'
    return _PICTURE.format(curve=drawn)


def section(guarantee: Guarantee) -> str:
    """Return the sliders, the curve and the numbers.

    The script `attack.js` fills them in from `data`.
    """
    # some attack reaches the bounds of an attained guarantee, so these bounds are exact
    attack = "the attack"
    most = "at most "
    alarms = "alarms"
    if guarantee.attained:
        attack = "the best attack"
        most = "up to "
        alarms = "its alarms"

    question = _QUESTIONS.get(guarantee.unit, _QUESTION)
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{value}</td></tr>'
        for name, value in _numbers(guarantee)
    )
    return _ATTACK.format(
        question=question.format(sentence=guarantee.unit.sentence),
        attack=attack,
        most=most,
        Most=most.capitalize(),
        alarms=alarms,
        unit=guarantee.unit.value,
        last=len(RATES) - 1,
        first=FIRST_RATE,
        case=_CASES.get(guarantee.unit, "the suspicion is true"),
        advantage=percent_up(guarantee.advantage).removesuffix("%"),
        source=_source(guarantee),
        picture=_PICTURE.format(curve=_MOVING_CURVE),
        numbers=rows,
    )


def _source(guarantee: Guarantee) -> str:
    """Return the sentence on how the curve was computed."""
    mu = exact_mu(guarantee)
    if mu == 0:
        return _NOTHING
    if mu is not None:
        return _EXACT.format(mu=rounded_up(mu))
    if guarantee.attained:
        return _ATTAINED
    return _BOUNDED


def _numbers(guarantee: Guarantee) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each number of the guarantee."""
    for delta in DELTAS:
        yield f"epsilon at delta = {delta:g}", _bound(guarantee.epsilon(delta))
    yield "pure epsilon", _bound(guarantee.epsilon())
    yield "rho (zCDP)", _bound(guarantee.rho)
    yield "mu (Gaussian DP)", _bound(guarantee.mu)


def _bound(value: float | None) -> str:
    if value is None or math.isinf(value):
        return "none"
    return rounded_up(value)
