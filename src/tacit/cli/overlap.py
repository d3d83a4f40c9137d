"""`tacit overlap`: whether public data, or the class names that a store carries, hold private
records or persons.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import STANDARD_OUTPUT, say, text_file
from tacit.cli.json_output import print_json
from tacit.cli.options import Json, MaybeOut
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.data.overlap import Overlap


def overlap(
    private: Path,
    public: Path | None = None,
    /,
    *,
    cosine: float = 0.98,
    out: MaybeOut = None,
    json: Json = False,
    force: bool = False,
) -> None:
    """Look for private records in public data: the same content, or nearly the same direction.

    The rows of class names that a store carries, which may be examples, are compared too. If both
    are stores that carry person ids, the persons that are in both are counted, as in a private and
    a test store.

    The answer is about private records. It is for their owner, and enters no release.

    Parameters
    ----------
    private
        The private data: a store's folder, or any file that tacit import reads.
    public
        Public data, or class names, of the same encoder. If left out, the class names that the
        private store carries are compared.
    cosine
        Two rows with this cosine or more count as near duplicates.
    out
        Write the pairs of rows as CSV; - is standard output.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.imports import read_data
    from tacit.data.locations import located
    from tacit.data.overlap import overlap as compare

    paths = [path for path in (private, public) if path is not None]
    compared = [located(path).resolve() for path in paths]
    if len(set(compared)) < len(compared):
        raise InputError(
            f"{public} is the private data; give other data, or leave it out to compare class names"
        )
    if out is not None and out != STANDARD_OUTPUT:
        check_writable(out, force=force)
        if out.is_dir():
            raise InputError(f"{out} is a folder; name a file")
        if out.resolve() in compared:
            raise InputError(f"--out {out} is compared data; choose another output")

    private_data = read_data(private)
    public_data = None if public is None else read_data(public)
    if public_data is None and private_data.names is None:
        raise InputError(f"{private} carries no class names to compare; give public data")
    with shown_progress():
        result = compare(private_data, public_data, cosine)

    if out != STANDARD_OUTPUT:
        if json:
            print_json(_facts(private_data, public_data, result))
        else:
            _print_overlap(paths, private_data, public_data, result, cosine)

    if out is not None:
        with text_file(out, force=force) as part:
            _write_pairs(part, result)


def _write_pairs(path: Path, result: "Overlap") -> None:
    """Write the pairs of a private and a public row as CSV, and why they count as near."""
    kinds = (
        ("direction", result.near, result.cosines),
        ("class name", result.near_names, result.names_cosines),
    )
    with path.open("w", encoding="utf-8") as file:
        file.write("private,public,why,cosine\n")
        file.writelines(f"{row},{place},content,1\n" for row, place in result.same.tolist())
        for why, near, cosines in kinds:
            pairs = zip(near.tolist(), cosines.tolist(), strict=True)
            file.writelines(f"{row},{place},{why},{value:.6f}\n" for (row, place), value in pairs)


def _facts(private: "Data", public: "Data | None", result: "Overlap") -> dict[str, int | None]:
    """The counts, null where there was nothing to compare."""
    return {
        "private_records": len(private.x),
        "same_content": len(result.same) if public is not None and result.hashed else None,
        "near": None if public is None else len(result.near),
        "near_class_names": len(result.near_names),
        "persons_in_both": result.persons,
    }


def _print_overlap(
    paths: list[Path],
    private_data: "Data",
    public_data: "Data | None",
    result: "Overlap",
    cosine: float,
) -> None:
    at_cosine = f"at cosine {cosine:g} or more."
    if public_data is not None:
        same = f"{len(result.same)} have the content of a public one"
        if not result.hashed:
            same = "contents not compared (no hashes stored)"
        near = f"{len(result.near)} have a match {at_cosine}"
        say(f"{len(private_data.x)} private records: {same}; {near}")
        without_ids = [
            path
            for path, data in zip(paths, (private_data, public_data), strict=True)
            if data.persons is None
        ]
        if result.persons is not None:
            say(f"{result.persons} persons are in both")
        elif len(without_ids) == 1:
            say(f"persons were not compared: {without_ids[0]} has no ids")

    named = private_data if public_data is None else public_data
    if named.names is not None:
        examples = f"match a row of the class names that {named.identity} carries"
        n_near = len(result.near_names)
        say(f"{len(private_data.x)} private records: {n_near} {examples}, {at_cosine}")
    say("This is about private records: it is for their owner, and belongs in no release.")
