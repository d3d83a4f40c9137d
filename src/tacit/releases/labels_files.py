"""Files of a folder of labels of public rows, read as if an attacker had written them."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tacit.compute.documents import parse_json
from tacit.errors import ReleaseError, excerpt, quoted
from tacit.releases import reading
from tacit.releases.labels_document import FORMAT, VERSION, LabelsDocument
from tacit.releases.reading import AGAIN, CARD, DOCUMENT, LABELS_DOCUMENT

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
    try:
        values = parse_json(data.decode("utf-8"))
    except ValueError as error:
        fault = f"{where} is not valid JSON ({excerpt(str(error))})"
        raise ReleaseError(f"{fault}; {AGAIN}") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        fault = f'{where} does not say "format": "{FORMAT}"'
        raise ReleaseError(f"{fault}; give a folder that tacit label-public wrote")
    if values.get("version") != VERSION:
        version = f"format version {quoted(values.get('version'))}"
        fault = f"{where} has {version}, this tacit reads {VERSION}"
        raise ReleaseError(f"{fault}; use the tacit that wrote it")
    try:
        return LabelsDocument.model_validate_json(data)
    except ValidationError as error:
        raise reading.refusal(where, error, AGAIN) from error
