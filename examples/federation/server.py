"""The server's side of a round, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from recipe import FILE, PUBLIC, Recipe
from tacit.privacy.parts import part_key

RECEIVED = "received"
RELEASE = "release"


def request(folder: Path) -> str:
    """Return the text that every owner is sent: the recipe."""
    return (folder / FILE).read_text(encoding="utf-8")


def combine(replies: Mapping[str, Any], folder: Path, *, asked: int) -> str:
    """Combine the summaries that arrived, now and in earlier rounds of the same recipe.

    Parameters
    ----------
    replies : dict
        By the name of the sender, which is for the report alone: the files of a summary by
        name, one entry `refused`, or anything.
    folder : Path
        The server's folder. It keeps the summaries in `received`; delete that of an owner who
        withdraws. The release is written to `release`, in place of an earlier one.
    asked : int
        To how many owners the request went.

    Returns
    -------
    str
        Who replied, what was left out and why, and what the release guarantees.
    """
    recipe = Recipe.of_json(request(folder))
    received = folder / RECEIVED / recipe.digest
    received.mkdir(parents=True, exist_ok=True)

    public = np.load(folder / PUBLIC)
    report = [f"{len(replies)} of {asked} owners replied"]
    report += keep(replies, received, of_public_rows(public, recipe))

    summaries = sorted(received.iterdir())
    if not summaries:
        return "\n".join([*report, "nothing to combine"])
    release = tacit.combine(summaries, public=public, name=recipe.study)
    release.save(folder / RELEASE, force=True)
    combined = f"{len(summaries)} summaries combined: {release.guarantee.statement()}"
    return "\n".join([*report, combined])


def keep(replies: Mapping[str, Any], received: Path, expected: tacit.Summary) -> list[str]:
    """Save the summaries that may be combined to the folder `received`; return a line a reply."""
    # the folder of each part, named after the hash of its summary
    folders = {}
    for folder in sorted(received.iterdir()):
        earlier = tacit.Summary.load(folder)
        folders[part_key(earlier.parts[0].name)] = folder

    report = []
    hashes = set[str]()
    for sender, files in sorted(replies.items()):
        try:
            summary = checked(files, expected, hashes)
            name = summary.parts[0].name
            folder = received / summary.sha256[:16]
            # a summary that is replayed is there already
            earlier_folder = folders.setdefault(part_key(name), folder)
            if earlier_folder != folder:
                raise Rejected(
                    f"{earlier_folder} is another summary of {name!r}, and both would cost more"
                    " than was agreed on; delete one of them"
                )
        except (tacit.TacitError, Rejected) as error:
            report.append(f"{sender}: left out: {error}")
            continue
        summary.save(folder, force=True)
        hashes.add(summary.sha256)
        report.append(f"{sender}: a summary of {name}")
    return report


class Rejected(Exception):
    """A reply that cannot be combined."""


def of_public_rows(public: np.ndarray, recipe: Recipe) -> tacit.Summary:
    """Return a summary of public rows, with labels of no meaning: one of the expected form."""
    labels = np.resize(recipe.classes, len(public))
    return recipe.summary_of(public, labels, part="public rows", public=public, allow_overlap=True)


def checked(files: Any, expected: tacit.Summary, hashes: Collection[str]) -> tacit.Summary:
    """Read and verify a reply; whoever sent it may have sent anything.

    Raises
    ------
    TacitError, Rejected
        If it is no summary, or one that is malformed, altered, poisoned, stamped, of another
        recipe, noise or price, of several parts, or has one of these hashes.
    """
    if not isinstance(files, dict) or not all(isinstance(data, bytes) for data in files.values()):
        raise Rejected("the reply holds no files")
    if "refused" in files:
        reason = files["refused"].decode(errors="replace")
        raise Rejected(f"the owner refused: {reason!r:.500}")

    summary = tacit.Summary.of_files(files).verify()
    # raises if they do not add up; the sum is not used
    expected + summary
    if summary.classes != expected.classes:
        raise Rejected(f"its classes are {summary.classes!r:.200}")
    if summary.guarantee.unit != expected.guarantee.unit:
        raise Rejected(f"it is private under {summary.guarantee.unit}")
    if len(summary.parts) != 1:
        raise Rejected(f"it is of {len(summary.parts)} parts, and an owner has one")
    # the price follows from the noise, which `verify` compared
    noise = summary.parts[0].noise_of_sums
    agreed = expected.parts[0].noise_of_sums
    if not np.isclose(noise, agreed, rtol=1e-9, atol=0):
        raise Rejected(f"the noise of its sums is {noise:.6g}, and {agreed:.6g} was agreed on")
    if summary.document.stamp is not None:
        raise Rejected(f"it is stamped {summary.document.stamp}")
    if summary.sha256 in hashes:
        raise Rejected("the summary was sent twice")
    return summary
