"""`tacit overlap`: whether a public store holds records of a private one."""

from pathlib import Path

from tacit.cli.common import shown_progress
from tacit.errors import InputError


def overlap(
    private: Path, public: Path, /, *, cosine: float = 0.98, out: Path | None = None, force: bool = False
) -> None:
    """Look for private records in a public store: the same content, or nearly the same direction.

    The answer is about private records. It is for their owner, and enters no release.

    Parameters
    ----------
    private
        Store of the private records.
    public
        Store of the public ones, of the same encoder.
    cosine
        From which on two rows count as near duplicates.
    out
        Write the pairs of rows as CSV.
    force
        Overwrite the output.
    """
    from tacit.compute.atomic import atomic_file, check_writable
    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.imports import located
    from tacit.data.overlap import overlap as compare

    if out is not None:
        check_writable(out, force=force)
        if out.is_dir():
            raise InputError(f"{out} is a folder; name a file")
    stores = EmbeddingStore.open(located(private)), EmbeddingStore.open(located(public))
    with shown_progress():
        found = compare(*stores, cosine)
    same = f"{len(found.same)} have the content of a public one"
    if not found.hashed:
        same = "contents were not compared: no hashes"
    print(f"of {stores[0].rows} private records {same}, {len(found.near)} reach a cosine of {cosine:g} with one")
    print("This is about private records: it is for their owner, and belongs in no release.")
    if out is None:
        return
    with atomic_file(out, force=force) as part, part.open("w", encoding="utf-8") as file:
        file.write("private,public,why,cosine\n")
        file.writelines(f"{row},{other},content,1\n" for row, other in found.same.tolist())
        pairs = zip(found.near.tolist(), found.cosines.tolist(), strict=True)
        file.writelines(f"{row},{other},direction,{value:.6f}\n" for (row, other), value in pairs)
