"""`tacit audit`: lower bounds on what a method reveals, beside its promise."""

from tacit.cli.common import say
from tacit.cli.json_output import print_json
from tacit.cli.options import Budget, Json, Unit


def audit(
    subject: str,
    /,
    *,
    budget: Budget = None,
    unit: Unit = None,
    delta: float = 1e-5,
    seed: int = 0,
    runs: int = 2000,
    json: Json = False,
) -> None:
    """Bound from below what a method reveals, and hold the bound against its promise.

    The status is 1 where a bound at confidence 1 - 1e-6, over all audits together, exceeds the
    promise.

    Parameters
    ----------
    subject
        A method, as `tacit methods` lists them.
    delta
        Where epsilon is promised and bounded.
    seed
        Of the canaries and the noise, which it repeats.
    runs
        Fits to each of two neighbouring data sets.
    """
    from tacit.errors import NothingDoneError
    from tacit.measure.auditing.audit import audit as audit_of
    from tacit.privacy.guarantee import rounded_up

    result = audit_of(subject, budget, delta=delta, seed=seed, unit=unit, runs=runs)
    if json:
        print_json(result.to_json())
    else:
        for bound in result.bounds:
            say(f"{bound.attack}: epsilon >= {bound.shown} ({bound.assumption})")
        say(result.sentence)
    if result.exceeded:
        promise = f"epsilon {rounded_up(result.promise)} at delta {delta:g}"
        raise NothingDoneError(
            f"{subject}: a lower bound exceeds the promise of {promise}; do not release what it"
            " learns, and report the fault as SECURITY.md says"
        )
