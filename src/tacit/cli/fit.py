"""`tacit fit`: from private embeddings to a release."""

import inspect
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from tacit.cli.common import (
    Method,
    known_method,
    labels_of,
    make_learner,
    one_line,
    read_classes,
    shown_progress,
    stated_delta,
)
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.privacy.ledger import Ledger


def fit(
    method: Method,
    store: Path,
    /,
    *,
    out: Path,
    budget: str | None = None,
    public: Path | None = None,
    classes: str | None = None,
    groups: Path | None = None,
    unit: str | None = None,
    ledger: Path | None = None,
    noise: str = "secure",
    seed: int | None = None,
    x: str | None = None,
    y: str | None = None,
    split: str | None = None,
    public_split: str | None = None,
    name: str | None = None,
    curator: str | None = None,
    description: str | None = None,
    intended_use: str | None = None,
    allow_research: bool = False,
    force: bool = False,
    **parameters: str,
) -> None:
    """Learn a private classifier and save it as a release.

    Parameters
    ----------
    store
        The private data: a store's folder, or any file that `tacit import` reads.
    budget
        epsilon=1, rho=0.5 or epsilon=1,delta=1e-6. Methods with budget groups take --budgets a=1,b=2 instead.
    out
        Folder of the release.
    public
        Public data, for methods that use some.
    classes
        A number N for 0..N-1, or a file with one class a line. By default those declared in the store.
    groups
        A file with the budget group of each record, one a line, for methods with --budgets.
    unit
        add-remove, replace or change-label: the unit in which the budget is read; by default the method's own.
    ledger
        The ledger to charge; by default the one beside the store, if there is one.
    noise
        secure, or research, which is seeded and not for release.
    seed
        Seed of research noise, and of what is public and drawn, in methods that have such a seed.
    x
        Name of the features inside the file, where it is not a usual one.
    y
        Name of the labels inside the file, where it is not a usual one.
    split
        Which split of a folder that has several.
    public_split
        The same for the public data.
    name
        Name of the product, for the card.
    curator
        Who publishes it, for the card.
    description
        What it is, for the card.
    intended_use
        What it is for, for the card.
    allow_research
        Save a release that is not for release, stamped so.
    force
        Overwrite the output.
    parameters
        Further parameters of the method, such as --k 5; the message about an unknown one lists those there are.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.imports import located, read_data
    from tacit.releases.release import Release, check_facts, is_release

    method = known_method(method)
    check_writable(out, force=force, ours=is_release)
    learner = make_learner(
        method, parameters, budget=budget, noise=noise, unit=unit, public=public,
        random_state=seed if noise == "research" else None,
    )  # fmt: skip
    if seed is not None:
        _seed(learner, seed, noise)
    _check_releasable(learner, allow_research)
    _check_folder(getattr(learner, "folder", None), out, [path for path in (store, public) if path is not None])
    kept = _scores_beside(out) if method == "public" and learner.get_params()["folder"] is None else None
    if kept is not None:
        learner.set_params(folder=kept)
    facts: dict[str, Any] = {"name": name or out.name, "curator": curator, "description": description}
    facts["intended_use"] = intended_use
    check_facts(facts)
    declared = read_classes(classes)
    if public is not None and located(public, public_split).resolve() == located(store, split).resolve():
        raise InputError(f"--public {public} is the private data; public rows would be released as they are")
    with shown_progress():
        data = read_data(store, x=x, y=y, split=split)
        labels = labels_of(data, store)
        learner.set_params(classes=declared if declared is not None else _declared(data))
        learner.set_params(ledger=_ledger(ledger, located(store, split), data))
        public_data = None
        if public is not None:
            check = method != "public"  # PublicPrototypes checks its many rows itself
            public_data = read_data(public, split=public_split, width=data.x.shape[1], check=check)
            if "subset" in public_data.card and public_data.identity == data.identity:
                raise InputError(f"--public {public} is a subset of {store}; public rows would be released as they are")
            learner.set_params(public=public_data.x)
        try:
            learner.fit(data.x, labels, **({} if groups is None else {"groups": _groups(groups, learner)}))
        except BaseException as stop:
            if kept is not None and not any(kept.glob("*/*/*.npy")):  # nothing to go on from
                rmtree(kept, ignore_errors=True)
            elif kept is not None and isinstance(stop, KeyboardInterrupt):
                raise KeyboardInterrupt(
                    f"interrupted; finished scores, which are private, are kept in {kept}: the same command goes on "
                    "from them (a ledger is charged again), or remove them"
                ) from None
            raise
    release = Release.of(
        learner,
        **facts,
        public=None if public_data is None else _public_facts(public_data),
        encoder=_encoder_facts(data),
    )
    release.save(out, force=force, allow_research=allow_research)
    if kept is not None:
        rmtree(kept, ignore_errors=True)
    print(f"{out}: {method} over {len(learner.classes_)} classes of width {learner.n_features_in_}")
    if hasattr(learner, "answers_"):
        print(f"{learner.answers_.answered} labels bought, by the first {learner.answers_.asked} public records")
    print(learner.guarantee_.statement(stated_delta(learner)))
    if learner.ledger is None:
        unit = learner.guarantee_.unit
        allow = "rho=1" if unit == "add-remove" else f"rho=1 --unit {unit}"
        print(f"No ledger counts this run; to limit what is spent, start one: tacit ledger {store} --allow {allow}")


def _check_releasable(learner: Any, allow_research: bool) -> None:
    """Refuse a bad budget, and what could not be saved, before any data is read or charged."""
    no_bound = not learner.promise().bounded
    if (no_bound or learner.noise != "secure") and not allow_research:
        why = "an infinite budget protects nothing" if no_bound else f"--noise {learner.noise} is seeded"
        raise InputError(f"{why}, so this is not for release; change it, or add --allow-research to keep it stamped so")


def _seed(learner: Any, seed: int, noise: str) -> None:
    """Give the public seed to a method that has one."""
    if "seed" in learner.get_params():
        learner.set_params(seed=seed)
    elif noise == "secure":
        import warnings

        warnings.warn(f"--seed {seed} is ignored: secure noise has no seed", stacklevel=2)


def _check_folder(folder: Any, out: Path, data: list[Path]) -> None:
    """Refuse a folder of stages in a store, in the release's place, or around that."""
    if not isinstance(folder, str | Path) or not str(folder):
        return
    one, other = Path(folder).resolve(), out.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise InputError(f"--folder {folder} and --out {out} lie in one another; give two folders side by side")
    for store in data:
        if store.resolve() in (one, *one.parents):
            raise InputError(f"--folder {folder} lies in {store}, which holds data; choose a folder outside of it")


def _scores_beside(out: Path) -> Path:
    """Where scores are kept until the release is made, so that the same command goes on after a kill."""
    return out.absolute().parent / f".{out.name}.scores"


def _groups(path: Path, learner: Any) -> list[str]:
    """Names of groups, one a line."""
    if "groups" not in inspect.signature(learner.fit).parameters:
        raise InputError(f"--groups does not apply to {type(learner).__name__}; leave it out")
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--groups {path} is not a readable text file; give one group a line") from error


def _declared(data: "Data") -> Any:
    return data.classes if data.classes_declared else None


def _ledger(path: Path | None, store: Path, data: "Data") -> "Ledger | None":
    from tacit.privacy.ledger import Ledger

    if path is not None:
        return Ledger(path, data.identity)
    beside = Ledger.beside(store, data.identity)
    return beside if beside.path.exists() else None


def _public_facts(public: "Data") -> dict[str, str]:
    commit = public.card.get("source_commit", "not stated")
    revision = ", ".join(map(str, commit.values())) if isinstance(commit, dict) else str(commit)
    return {"name": one_line(public.identity), "revision": one_line(revision), "hash": public.content_hash}


def _encoder_facts(data: "Data") -> dict[str, str] | None:
    encoder = data.card.get("encoder")
    if not isinstance(encoder, dict):
        return None
    facts = {"name": "name", "revision": "weights_commit", "hash": "weights_sha256"}
    return {ours: one_line(encoder.get(theirs, "not stated")) for ours, theirs in facts.items()}
