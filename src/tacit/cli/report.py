"""`tacit report`: what a sweep found, drawn."""

from pathlib import Path


def report(runs: Path, /, *, out: Path, format: str | None = None, where: str = "", force: bool = False) -> None:
    """Draw what a sweep found: a page that needs no network, a PDF, or a folder of figures.

    Parameters
    ----------
    runs
        Folder of a sweep.
    out
        A page.html, a figures.pdf with all figures and tables, or a folder, which gets a file for each figure, the
        captions and the tables.
    format
        One of: html, pdf, svg, png. By default what the name of the output says; a folder needs pdf, svg or png.
    where
        Draw only some cells: a condition on the fields, in SQL, such as "method = 'newton' and rho < 1".
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_file, atomic_folder, check_writable
    from tacit.errors import InputError
    from tacit.experiments.results import read_results
    from tacit.report import sweep

    format = _format(out) if format is None else format
    if format not in sweep.FORMATS:
        raise InputError(f"--format {format} is not known; choose from: {', '.join(sweep.FORMATS)}")
    folder = format in ("svg", "png") or (format == "pdf" and out.suffix != ".pdf")
    check_writable(out, force=force, ours=sweep.is_images if folder else None)
    results = read_results(runs, where)
    if not results:
        raise InputError(f"--where {where!r} is true of none of the cells in {runs}; loosen it, or leave it out")
    title = f"Sweep {runs.resolve().name}"
    if folder:
        with atomic_folder(out, force=force, ours=sweep.is_images) as part:
            sweep.write_images(results, format, part)
    else:
        with atomic_file(out, force=force) as part:
            part.write_bytes(sweep.pdf(results, title) if format == "pdf" else sweep.html(results, title).encode())
    print(f"{out}: {len(results)} cells, {sum(one.status == 'failed' for one in results)} failed")


def _format(out: Path) -> str:
    from tacit.errors import InputError

    if out.suffix not in (".html", ".pdf"):
        raise InputError(
            f"--out {out} does not say what to make; name a page.html or a figures.pdf, or add --format pdf, svg or "
            "png, which make a folder of figures"
        )
    return out.suffix[1:]
