"""`tacit report`: the results of a sweep, drawn."""

from pathlib import Path
from typing import Literal

from tacit.cli.common import say
from tacit.cli.options import Out


def report(
    runs: Path,
    /,
    *,
    out: Out,
    format: Literal["html", "pdf", "svg", "png"] | None = None,
    where: str = "",
    force: bool = False,
) -> None:
    """Draw the results of a sweep: a page that needs no network, or a folder of figures.

    Parameters
    ----------
    runs
        Folder of a sweep.
    out
        A page.html, or a folder, which gets a file for each figure, the captions and the tables.
    format
        A folder needs pdf, svg or png; a page is html without saying so.
    where
        Draw only some cells: a condition on the fields, in SQL, such as "method = 'newton' and rho
        < 1".
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_file, atomic_folder, check_writable
    from tacit.errors import InputError
    from tacit.experiments.results import read_results
    from tacit.report import sweep
    from tacit.report.vega import FORMATS

    ending = out.suffix[1:]
    if ending in FORMATS:
        remedy = f"write --format {ending} --out {out.with_suffix('')}"
        raise InputError(f"--out {out} would be one file of many figures; {remedy}")
    if format is None and ending != "html":
        raise InputError(
            f"--out {out} is not an .html file; name a page, or add --format pdf, svg or png for a"
            " folder"
        )
    page = format in (None, "html")
    check_writable(out, force=force, ours=None if page else sweep.is_images)
    results = read_results(runs, where)
    if not results:
        raise InputError(
            f"--where {where!r} is true of none of the cells in {runs}; loosen it, or leave it out"
        )
    if page:
        with atomic_file(out, force=force) as part:
            part.write_text(sweep.html(results, f"Sweep {runs.resolve().name}"), encoding="utf-8")
    else:
        with atomic_folder(out, force=force, ours=sweep.is_images) as part:
            sweep.write_images(results, str(format), part)
    say(f"{out}: {len(results)} cells, {sum(one.status == 'failed' for one in results)} failed")
