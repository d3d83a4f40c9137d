"""`tacit report`: the results of a sweep, of one plan or of several, drawn."""

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
        Folder of a sweep. For that of a folder of plans the page has a section for each plan.
    out
        A page.html, or a folder, which gets a file for each figure, the captions and the tables;
        of several plans, a sub-folder for each.
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
    from tacit.experiments.results import files_of, folders_of, read_results
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
    several = len(folders_of(runs)) > 1 or not files_of(runs)
    ours = sweep.is_images_of_plans if several else sweep.is_images
    check_writable(out, force=force, ours=None if page else ours)
    results = read_results(runs, where)
    if not results:
        raise InputError(
            f"--where {where!r} is true of none of the cells in {runs}; loosen it, or leave it out"
        )

    title = f"Sweep {runs.resolve().name}"
    if page:
        if several:
            html = sweep.html_of_plans(sweep.read_plans(runs, where), title)
        else:
            html = sweep.html(results, title)
        with atomic_file(out, force=force) as part:
            part.write_text(html, encoding="utf-8")
    else:
        with atomic_folder(out, force=force, ours=ours) as part:
            if several:
                sweep.write_images_of_plans(sweep.read_plans(runs, where), str(format), part)
            else:
                sweep.write_images(results, str(format), part)
    say(f"{out}: {len(results)} cells, {sum(one.status == 'failed' for one in results)} failed")
