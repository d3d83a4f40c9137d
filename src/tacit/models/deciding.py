"""What a learner or a combination of summaries decides by noisy class sums, without gradients.

All of this is post-processing of a release, public rows and public names, so it has no privacy
cost. With public rows the sums become a posterior of class means (`posterior.py`), which the
directions of class names may inform (`named_posterior.py`); scores, offsets and probabilities
follow from it (`quadratic.py`, `calibration.py`). Without public rows the direction of each sum
decides.

The noise of sums and counts is one standard deviation for all classes, or one for each class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.compute.timing import SOLVING, phase
from tacit.models.calibration import (
    fair_offsets,
    posterior_probabilities,
    simulated,
    with_doubt_of_names,
)
from tacit.models.carried import IN_RELEASE, CarriedPosterior
from tacit.models.decisions import NearestPrototype, QuadraticHead
from tacit.models.named_posterior import named_posterior
from tacit.models.noisy_sums import NoisySums
from tacit.models.posterior import ClassPosterior, class_posterior
from tacit.models.public_prior import PublicPrior
from tacit.models.quadratic import QuadraticScores, blended
from tacit.models.released import Released
from tacit.models.rows import Floats, centre_array, normalisation

LEFT_OUT = "left out: the sums contradict them, or all are alike"


@dataclass(frozen=True, eq=False)
class Decided:
    """A decision by noisy class sums, and the posterior that it follows from.

    `names_used` says whether there were names and the sums did not contradict them.
    """

    released: Released
    posterior: ClassPosterior
    names_used: bool


def decided(
    prior: PublicPrior,
    release: NoisySums,
    *,
    names: Floats | None,
    centre: Floats | None,
    facts: dict[str, Any],
) -> Decided:
    """Decide by quadratic scores of the posterior of class means.

    Parameters
    ----------
    prior : PublicPrior
        Facts of the public rows about the centre.
    release : NoisySums
        Sums and counts along the axes of the prior.
    names : ndarray of shape (C, d), optional
        Directions of the class names about the centre: unit rows.
    centre : ndarray of shape (d,), optional
        The public centre.
    facts : dict
        Public facts of how the sums were made; those of names and rows are appended.
    """
    plain = class_posterior(prior, release)
    carried = carried_posterior(prior, release, plain, along_axes(names, prior))
    facts = facts | facts_of_decision(carried, names, centre)
    released = decision(prior, carried, plain.trust, centre, facts)
    return Decided(released, carried.posterior, carried.names is not None)


def along_axes(names: Floats | None, prior: PublicPrior) -> Floats | None:
    """Turn directions of names (C, d), where there are some, to the axes: (C, p)."""
    if names is None:
        return None
    return names @ prior.axes


def carried_posterior(
    prior: PublicPrior, release: NoisySums, plain: ClassPosterior, names: Floats | None
) -> CarriedPosterior:
    """Return the posterior with class names, (C, p) along the axes, or the `plain` one if the sums
    contradict them or there are none.
    """
    posterior = plain
    used_names = None
    named = None
    if names is not None:
        named = named_posterior(prior, release, plain, names)
    if named is not None:
        posterior = named
        used_names = names

    # clarity belongs to the sums, so names do not change it
    clarity = plain.clarity(release.noise)
    return CarriedPosterior(posterior, prior.axes, prior.variances, clarity, used_names)


def facts_of_decision(
    carried: CarriedPosterior, names: Floats | None, centre: Floats | None
) -> dict[str, Any]:
    """Return the public facts of every decision by a posterior."""
    name_use = "none"
    if names is not None:
        name_use = LEFT_OUT if carried.names is None else "used"
    return {"class names": name_use, "normalisation": normalisation(centre)}


def scores_of(prior: PublicPrior, carried: CarriedPosterior, *, linear: bool) -> QuadraticScores:
    """Return the scores of classes before offsets; `linear` ones have no squares."""
    return blended(
        carried.posterior,
        prior.variances,
        prior.sample,
        carried.clarity,
        carried.names,
        linear=linear,
    )


def decision(
    prior: PublicPrior,
    carried: CarriedPosterior,
    plain_trust: float,
    centre: Floats | None,
    facts: dict[str, Any],
) -> Released:
    """Quadratic scores of the posterior, with fair offsets.

    `plain_trust` is the trust of the posterior without names.
    """
    scores = scores_of(prior, carried, linear=False)
    with phase(SOLVING):
        rows = simulated(carried, prior.sample)
        offsets = fair_offsets(carried.clarity, rows, scores.of, sums_alone=carried.names is None)
        scores = scores.moved(offsets)
        doubted_rows = with_doubt_of_names(rows, carried, plain_trust)
        confidence = posterior_probabilities(carried.posterior, doubted_rows, scores.of)

    arrays = {
        "coefficients": scores.slopes @ carried.axes.T,
        "intercepts": scores.offsets,
        **centre_array(centre),
        "axes": carried.axes,
        "squares": scores.squares,
    }
    what = f"one quadratic score per class, from noisy class sums{IN_RELEASE}"
    return Released(what, arrays, QuadraticHead(), facts, carried.arrays(arrays), confidence)


def directions_of_sums(sums: Floats, *, centre: Floats | None, facts: dict[str, Any]) -> Released:
    """Decide by the direction of each class's sum, (C, d), without public rows but for a centre.

    A cosine does not depend on the length of a sum, so neither the sizes of the classes nor the
    noise of each matters. `facts` say how the sums were made; that of rows is appended.
    """
    facts = facts | {"normalisation": normalisation(centre)}
    arrays = {"prototypes": sums} | centre_array(centre)
    return Released(
        "one noisy sum of unit rows per class", arrays, NearestPrototype("cosine"), facts
    )
