"""`tacit overlap`: whether public data, or the class names that a store carries, hold private
records or persons.
"""

from pathlib import Path

from tacit.cli.common import say, shown_progress
from tacit.errors import InputError


def overlap(
    private: Path,
    public: Path | None = None,
    /,
    *,
    cosine: float = 0.98,
    out: Path | None = None,
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
        Write the pairs of rows as CSV.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_file, check_writable
    from tacit.data.imports import located, read_data
    from tacit.data.overlap import overlap as compare

    compared = [located(path) for path in (private, public) if path is not None]
    if len({path.resolve() for path in compared}) < len(compared):
        raise InputError(
            f"{public} is the private data; give other data, or leave it out to compare class names"
        )
    if out is not None:
        check_writable(out, force=force)
        if out.is_dir():
            raise InputError(f"{out} is a folder; name a file")
        if out.resolve() in [path.resolve() for path in compared]:
            raise InputError(f"--out {out} is compared data; choose another output")
    own = read_data(private)
    other = own if public is None else read_data(public)
    if public is None and own.names is None:
        raise InputError(f"{private} carries no class names to compare; give public data")
    records = len(own.x)
    with shown_progress():
        found = compare(own, None if public is None else other, cosine)
    if public is not None:
        same = f"{len(found.same)} have the content of a public one"
        if not found.hashed:
            same = "contents not compared (no hashes stored)"
        say(
            f"{records} private records: {same}; {len(found.near)} have a match at cosine"
            f" {cosine:g} or more."
        )
        without = [
            path for path, store in ((private, own), (public, other)) if store.persons is None
        ]
        if found.persons is not None:
            say(f"{found.persons} persons are in both")
        elif len(without) == 1:
            say(f"persons were not compared: {without[0]} has no ids")
    if other.names is not None:
        examples = (
            f"{len(found.near_names)} match a row of the class names that {other.identity} carries"
        )
        say(f"{records} private records: {examples}, at cosine {cosine:g} or more.")
    say("This is about private records: it is for their owner, and belongs in no release.")
    if out is None:
        return
    with atomic_file(out, force=force) as part, part.open("w", encoding="utf-8") as file:
        file.write("private,public,why,cosine\n")
        file.writelines(f"{row},{place},content,1\n" for row, place in found.same.tolist())
        for why, near, cosines in (
            ("direction", found.near, found.cosines),
            ("class name", found.near_names, found.names_cosines),
        ):
            pairs = zip(near.tolist(), cosines.tolist(), strict=True)
            file.writelines(f"{row},{place},{why},{value:.6f}\n" for (row, place), value in pairs)
