"""Files of a folder of labels of public rows, read as if an attacker had written them."""

from __future__ import annotations

from pathlib import Path

from tacit.errors import ReleaseError
from tacit.releases import reading
from tacit.releases.labels_document import FORMAT, VERSION, LabelsDocument
from tacit.releases.reading import CARD, DOCUMENT, LABELS_DOCUMENT

TABLE = "labels.csv"
LIMITS = {
    LABELS_DOCUMENT: reading.LIMITS[DOCUMENT],
    DOCUMENT: reading.LIMITS[DOCUMENT],
    TABLE: 2**29,
    CARD: 2 * reading.LIMITS[CARD],
}


def holds_public_labels(folder: Path, besides: tuple[str, ...] = ()) -> bool:
    """Tell whether a folder holds labels of public rows, in plain files, and nothing else but
    `besides`.
    """
    return reading.holds(folder, LABELS_DOCUMENT, besides, tuple(LIMITS))


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the bytes of the four files."""
    if not (folder / LABELS_DOCUMENT).is_file():
        raise ReleaseError(
            f"{folder} holds no {LABELS_DOCUMENT}; give a folder that tacit label-public wrote"
        )
    reading.check_names(folder, reading.NEVER_OPENED, tuple(LIMITS))
    return {name: reading.read_file(folder / name, limit) for name, limit in LIMITS.items()}


def parse_labels_document(where: str, data: bytes) -> LabelsDocument:
    """Parse `labels.json`."""
    return reading.parse_model(
        LabelsDocument,
        where,
        data,
        format=FORMAT,
        versions=(VERSION,),
        remedy="give a folder that tacit label-public wrote",
    )
