"""`tacit combine`: a classifier, or one summary, of the summaries of one or many owners."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import say
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.options import CardFacts, Force, Json, Out
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError, NothingDoneError, quoted

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.data.names import ClassNames
    from tacit.releases.combination import Combination
    from tacit.releases.sources import Leaving
    from tacit.releases.summary import Summary
    from tacit.releases.summary_document import SummaryRecipe

MOST_ROWS = 20
"""Parts that are printed; the card has all."""


def combine(
    *summaries: Path,
    out: Out,
    public: Path | None = None,
    public_split: str | None = None,
    names: Path | None = None,
    method: str | None = None,
    overlapping: bool = False,
    moving: bool = False,
    allowance: tuple[str, ...] = (),
    keep_noisy: bool = False,
    without: tuple[str, ...] = (),
    forget: bool = False,
    as_summary: bool = False,
    engine: str | None = None,
    jobs: int = 1,
    folder: Path | None = None,
    card: CardFacts | None = None,
    date: str | None = None,
    allow_research: bool = False,
    json: Json = False,
    force: Force = False,
) -> None:
    """Make a classifier of the summaries of one or many owners, at no further cost.

    Sums add up exactly, in any order and grouping. A part that grows sends a further summary, under
    a name of its own if it is of other records; a new class is one more class in the united list.

    Parameters
    ----------
    summaries
        Folders of summaries (tacit summarise) of one encoder, about one public centre.
    out
        Folder of the release, or of the summary with --as-summary.
    public
        The public rows by which the summaries were made, or others of the same encoder where these
        have no public centre. With them the classifier is that of `auto`, without them that of
        `noisy-sum`.
    public_split
        Which split of the public rows, where they have several.
    names
        Rows of class names: a store or file with rows labelled by class, or with one row for each
        class in their order; they need --public.
    method
        The decision: auto (with public rows) or noisy-sum (without) by default; least-squares where
        all summaries hold second moments (tacit summarise --moments).
    overlapping
        Declare that parts may share records, or persons under a unit per person: the costs of all
        parts add up. Otherwise parts of different names are declared to share none.
    moving
        Declare that a replaced record may belong to another part than before.
    allowance
        What may be spent on a part in all, fixed before its first summary, such as "hospital
        A: rho=1"; give it once for each part. The part counts at that; otherwise its budgets are
        declared as fixed beforehand.
    keep_noisy
        Keep summaries whose noise is so large that their sums lower the expected quality. Otherwise
        they are left out, by their noise multipliers and class lists alone. --as-summary keeps all.
    without
        Leave the summaries of this part out; give it once for each. It recalls nothing that was
        released of the part. What of the others' recipes was computed from a release that holds the
        part is named.
    forget
        With --without: write nothing, with exit status 1, unless no recipe that remains has a
        source that holds the part.
    as_summary
        Write the sum as a summary, which adds up with others again.
    engine
        Where thousands of summaries are added up, with the same bits: joblib, ray, ray:ADDRESS,
        slurm or slurm:PARTITION; by default in this process.
    jobs
        Groups of summaries that an engine adds up at the same time.
    folder
        For sums of groups, from which a run that was killed goes on; all workers must see it.
    date
        Day of publication as YYYY-MM-DD; by default today, of a summary the latest of its parts.
    allow_research
        Write what is not for release, stamped so.
    """
    from tacit.compute.atomic import check_writable
    from tacit.compute.progress import progress
    from tacit.data.names import names_of
    from tacit.releases.adding_tree import added_anywhere
    from tacit.releases.combination import Declared
    from tacit.releases.noisy import without_noisy
    from tacit.releases.reading import is_release
    from tacit.releases.sources import Leaving
    from tacit.releases.summary_files import holds_summary, read_document

    if not summaries:
        raise InputError("there are no summaries to combine; name the folder of one at least")
    if forget and not without:
        raise InputError("--forget is about parts that are left out; name one with --without")
    _check_options(public, names, card, method, as_summary=as_summary)
    check_writable(out, force=force, ours=holds_summary if as_summary else is_release)
    _check_outside(out, summaries)
    facts = _facts(card, out, date)
    declared = Declared.of(overlapping, moving, _allowances(allowance))

    in_this_process = engine is None and jobs == 1 and folder is None
    leaving = Leaving(without)
    with shown_progress():
        # before thousands of summaries are read
        recipe = read_document(summaries[0]).recipe
        rows, name_rows = _public_rows(recipe, public, public_split, names)
        if rows is not None:
            leaving.note_public(str(public), rows.card)

        chosen: Iterable[Any] = leaving.remaining(summaries) if without else summaries
        noisy: list[str] = []
        # a sum that is added to others again keeps all, so that groups change no bit
        if not (keep_noisy or as_summary):
            chosen, noisy = without_noisy(chosen)
        if in_this_process:
            listed = list(chosen)
            chosen = progress(listed, "summaries", len(listed))
        total = added_anywhere(
            chosen,
            engine=engine,
            jobs=jobs,
            folder=folder,
            declared=declared.besides(noisy),
            name=None if card is None else card.name,
            date=date,
        )
        if forget:
            _check_forgotten(leaving, out)
        if as_summary:
            total.save(out, force=force, allow_research=allow_research)
        else:
            class_names = None
            if name_rows is not None:
                class_names = names_of(name_rows, total.classes, f"--names {names}")
            release = _release(total, rows, class_names, method, facts, date)
            release.save(out, force=force, allow_research=allow_research)

    if json:
        _print_json(total, out, leaving, noisy, as_summary=as_summary)
        return
    _print_text(total, out, leaving, noisy, as_summary=as_summary)


def _allowances(texts: tuple[str, ...]) -> dict[str, str]:
    """Read parts and budgets: the last colon stands between them."""
    allowances: dict[str, str] = {}
    for text in texts:
        part, colon, budget = text.rpartition(":")
        if not colon:
            raise InputError(
                f"--allowance {quoted(text)} must name a part and its budget; pass for example"
                " 'hospital A: rho=1'"
            )
        name = part.strip()
        if name in allowances:
            raise InputError(f"--allowance names {quoted(part)} twice; state one amount")
        allowances[name] = budget.strip()
    return allowances


def _check_options(
    public: Path | None,
    names: Path | None,
    card: CardFacts | None,
    method: str | None,
    *,
    as_summary: bool,
) -> None:
    """Refuse options that do not go together."""
    from tacit.releases.combining import check_method

    check_method(method)
    if names is not None and public is None:
        raise InputError(f"--names {names} need public rows beside them; give --public STORE")
    if not as_summary:
        return
    for option, value in {"public": public, "names": names, "method": method}.items():
        if value is not None:
            raise InputError(
                f"--{option} {value} is for a classifier, and --as-summary makes none; leave one"
                " of them out"
            )
    for option in ("curator", "description", "intended_use"):
        if card is not None and getattr(card, option) is not None:
            shown = option.replace("_", "-")
            raise InputError(
                f"--{shown} does not go with --as-summary, whose card is that of its parts; leave"
                " it out"
            )


def _check_outside(out: Path, summaries: tuple[Path, ...]) -> None:
    """Refuse an output that is one of the summaries, or lies in one."""
    place = out.absolute().resolve()
    for summary in summaries:
        folder = summary.absolute().resolve()
        if folder == place or folder in place.parents:
            raise InputError(
                f"--out {out} is the summary {summary}, or in it; choose another output"
            )


def _facts(card: CardFacts | None, out: Path, date: str | None) -> dict[str, Any]:
    """Return the facts of the card, checked; by default its name is that of the output."""
    from tacit.releases.fitted import product

    facts = asdict(card or CardFacts())
    facts["name"] = facts["name"] or out.name
    product("combined", facts, date)
    return facts


def _public_rows(
    recipe: "SummaryRecipe", public: Path | None, split: str | None, names: Path | None
) -> tuple["Data | None", "Data | None"]:
    """Read the public rows, which must be of the summaries' encoder, and rows of class names."""
    from tacit.data.imports import read_data
    from tacit.data.synthetic import warn_of_synthetic

    if public is None:
        return None, None
    rows = read_data(public, split=split, width=recipe.width, role="train")
    warn_of_synthetic(rows.card, public, stacklevel=1)
    _check_encoder(recipe, rows, public)
    if names is None:
        return rows, None
    return rows, read_data(names, width=recipe.width)


def _check_encoder(recipe: "SummaryRecipe", rows: "Data", path: Path) -> None:
    """Refuse public rows of another encoder than the summaries state."""
    from tacit.releases.provenance import compare_encoders

    compared = compare_encoders(recipe.encoder, rows)
    if compared.different:
        different = "; ".join(compared.different).replace("the release", "the summary")
        raise InputError(
            f"{path} is of another encoder: {different}; encode it as the private rows were"
        )


def _release(
    total: "Summary",
    rows: "Data | None",
    names: "ClassNames | None",
    method: str | None,
    facts: dict[str, Any],
    date: str | None,
) -> Any:
    """Make the release of a sum."""
    from tacit.releases.combining import Facts, release_of
    from tacit.releases.provenance import names_facts, public_facts

    return release_of(
        total,
        public=None if rows is None else rows.x,
        names=None if names is None else names.rows,
        method=method,
        facts=Facts(**facts),
        facts_of_public=None if rows is None else public_facts(rows),
        facts_of_names=None if names is None else names_facts(names),
        day=date,
    )


def _print_text(
    total: "Summary", out: Path, leaving: "Leaving", noisy: list[str], *, as_summary: bool
) -> None:
    """Say what was combined, what was left out, and what it costs."""
    from tacit.releases.noisy import noisy_sentence

    combination = total.document.combination
    spellings = _spellings(combination)
    n_parts = _number(len(spellings), "part")
    kind = "summary" if as_summary else "release"
    of = _number(len(combination.parts), "summary")
    say(f"{out}: {kind} of {of} of {n_parts}, over {len(total.classes)} classes")
    _print_parts(combination)
    _print_repeated(spellings)
    _print_left_out(leaving, out)
    if noisy:
        sentence = noisy_sentence(noisy, "--keep-noisy")
        say(f"{sentence[0].upper()}{sentence[1:]}.")
    say(total.guarantee.statement())
    if combination.overlapping:
        say("Parts may share records, as declared, so the costs of all parts add up.")


def _print_parts(combination: "Combination") -> None:
    """Print a row for each part: those of the card, without the hashes of arrays."""
    from tacit.releases.combination import part_lines

    lines = part_lines(combination, hashes=False)
    for line in lines[:MOST_ROWS]:
        say(f"  {line}")
    if len(lines) > MOST_ROWS:
        say(f"  and {len(lines) - MOST_ROWS} more, which the card has")


def _spellings(combination: "Combination") -> dict[str, list[str]]:
    """Return the names under which the summaries of each part came: several where they differ by
    case or white space.
    """
    from tacit.privacy.parts import part_key

    spellings: dict[str, list[str]] = {}
    for row in combination.parts:
        spellings.setdefault(part_key(row.name), []).append(row.name)
    return spellings


def _print_repeated(spellings: dict[str, list[str]]) -> None:
    """Say which parts have several summaries."""
    repeated = [names for names in spellings.values() if len(names) > 1]
    for names in repeated[:MOST_ROWS]:
        shown = ", ".join(repr(name) for name in sorted(set(names)))
        say(
            f"{len(names)} summaries are of one part, {shown}: their costs add up, and a record"
            " that is in several of them counts as often. New records are a part of another name."
        )
    if len(repeated) > MOST_ROWS:
        say(f"and {len(repeated) - MOST_ROWS} more parts have several summaries")


def _check_forgotten(leaving: "Leaving", out: Path) -> None:
    """Refuse what a part that leaves has still gone into."""
    if leaving.holdings:
        sentences = [holding.sentence(part) for part, holding in leaving.holdings]
        more = f"; and {len(sentences) - MOST_ROWS} more" if len(sentences) > MOST_ROWS else ""
        raise NothingDoneError(
            f"{out} was not written: {'; '.join(sentences[:MOST_ROWS])}{more}; make these summaries"
            " again by another recipe, at their price, or leave them out too"
        )


def _print_left_out(leaving: "Leaving", out: Path) -> None:
    """Say what was left out, and what still holds it."""
    if not leaving.names:
        return
    for where, part in leaving.left_out:
        say(f"Left out: {where}, of part {part!r}")
    say(
        "This recalls nothing: what was released of a part stays released, and its price stays"
        " charged."
    )
    for part, holding in leaving.holdings[:MOST_ROWS]:
        say(f"{holding.sentence(part)}; so {out} cannot be said never to have seen it.")
    if len(leaving.holdings) > MOST_ROWS:
        say(f"and {len(leaving.holdings) - MOST_ROWS} more, which tacit.holders_of lists")
    if not leaving.holdings:
        listed = ", ".join(map(repr, leaving.names.values()))
        say(f"By the sources that their recipes state, the summaries of {out} never saw {listed}.")


def _print_json(
    total: "Summary", out: Path, leaving: "Leaving", noisy: list[str], *, as_summary: bool
) -> None:
    print_json(
        {
            "summary" if as_summary else "release": str(out),
            "classes": list(total.classes),
            "parts": [row.model_dump(mode="json") for row in total.parts],
            "left_out": [{"summary": where, "part": part} for where, part in leaving.left_out],
            "too_noisy": noisy,
            "still_holds": [
                {"part": part, **holding._asdict()} for part, holding in leaving.holdings
            ],
            **guarantee_facts(total.guarantee),
        }
    )


def _number(number: int, noun: str) -> str:
    """Return a number with its noun."""
    plural = {"summary": "summaries"}.get(noun, f"{noun}s")
    return f"{number} {noun if number == 1 else plural}"
