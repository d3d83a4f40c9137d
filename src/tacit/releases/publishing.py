"""A release, or labels of public rows by one, as a folder that hubs show: with a README, and a
signature where a key is given.

The README says in plain words what it is, and then what the card says, below a header in YAML, in
the form of the Hugging Face Hub's cards of models or data sets. Loading a release or labels never
opens it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.compute.atomic import atomic_folder, check_writable
from tacit.compute.libraries.huggingface_hub import load_huggingface_hub
from tacit.errors import InputError, excerpt
from tacit.releases.labels_document import labels_card, labels_opening
from tacit.releases.labels_files import TABLE, holds_public_labels
from tacit.releases.measured import PaidUtility
from tacit.releases.opening import NOT_SIGNED
from tacit.releases.opening import opening as opening_of
from tacit.releases.public_labels import PublicLabels
from tacit.releases.reading import LABELS_DOCUMENT, README, SIGNATURE, is_release
from tacit.releases.release import Release
from tacit.releases.schema import Document, LabelSetUtility, Utility
from tacit.releases.signing import fingerprint, sign

__all__ = ["publish", "readme", "upload"]

TASK = "tabular-classification"
TAGS = ["differential-privacy", "embeddings"]


def publish(
    release: Release | PublicLabels,
    folder: Path | str,
    *,
    license: str | None = None,
    key: Path | str | None = None,
    force: bool = False,
) -> Path:
    """Write a release, which is verified first, as a folder for a model hub.

    Parameters
    ----------
    release : Release or PublicLabels
        As `Release.load` or `Release.of` returns it; or labels of public rows, for a hub of data
        sets.
    folder : str or Path
        A new folder, returned as a Path.
    license : str, optional
        Identifier of the license for the header of README.md, such as "apache-2.0"; by default the
        header states none.
    key : str or Path, optional
        PEM file of the private key to sign the folder with; needs the extra `hub`.
    force : bool, default=False
        Replace an older folder of that name and kind, published or not; no other folder is ever
        replaced.

    Raises
    ------
    ReleaseError
        If the release does not verify, or is stamped "NOT FOR RELEASE".
    InputError
        If the folder exists or cannot be written, is signed and no key is given, or there is no
        such key.

    Examples
    --------
    >>> import tempfile, numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 50, axis=0), np.repeat([0, 1], 50)
    >>> model = tacit.NoisySumPrototypes("rho=0.5", classes=2).fit(X, y)
    >>> release = tacit.Release.of(model, name="pets")
    >>> folder = tacit.publish(release, tempfile.mkdtemp() + "/pets", license="apache-2.0")
    >>> sorted(file.name for file in folder.iterdir())
    ['CARD.md', 'README.md', 'arrays.safetensors', 'release.json']
    >>> tacit.Release.load(folder).verify().classes
    array([0, 1])
    """
    kind = _is_published_labels if isinstance(release, PublicLabels) else _is_published
    folder = check_writable(folder, force=force, ours=kind)

    # a link that leads nowhere is a signature too, so `exists` would not do
    if key is None and os.path.lexists(folder / SIGNATURE):
        remedy = (
            f"sign again with --sign KEY (key= in Python), or remove {folder / SIGNATURE} first"
        )
        raise InputError(
            f"{folder} is signed and would be replaced by a folder that is not; {remedy}"
        )

    files = release.verify().files()
    files[README] = _readme_of(release, license, key).encode("utf-8")
    with TemporaryDirectory() as temporary:
        # a signature states the folder's name, so the folder is signed under its final name, which
        # is empty for "."
        named_folder = Path(temporary) / (folder.name or "release")
        named_folder.mkdir()
        for name, data in files.items():
            (named_folder / name).write_bytes(data)
        if key is not None:
            sign(named_folder, Path(key))

        with atomic_folder(folder, force=force, ours=kind) as part:
            # contents alone: files get the modes of new files, whatever the signer gave them
            shutil.copytree(named_folder, part, dirs_exist_ok=True, copy_function=shutil.copyfile)
    return folder


def upload(folder: Path | str, repository: str) -> None:
    """Upload a published folder to a repository of the Hugging Face Hub, which is made if there is
    none: one of models, or of data sets for labels of public rows.

    The hub's client finds the user's own login. A signature of an earlier upload is removed or
    replaced, since it does not fit the new files.

    Raises
    ------
    InputError
        If huggingface_hub is not installed, or the hub refuses.
    """
    client = load_huggingface_hub()
    # by default a repository is one of models
    kind = {"repo_type": "dataset"} if (Path(folder) / LABELS_DOCUMENT).exists() else {}
    try:
        hub = client.HfApi()
        hub.create_repo(repository, exist_ok=True, **kind)
        hub.upload_folder(
            repo_id=repository, folder_path=folder, delete_patterns=[SIGNATURE], **kind
        )
    except Exception as error:
        # Faults of the network, the login, the name and the client have no common class. Some have
        # no text.
        fault = excerpt(str(error)) or type(error).__name__
        raise InputError(
            f"repository {repository} cannot be written ({fault}); log in with hf auth login"
        ) from error


def _readme_of(release: Release | PublicLabels, license: str | None, key: Path | str | None) -> str:
    signature = NOT_SIGNED
    if key is not None:
        signer = fingerprint(Path(key), private=True)
        signature = f"{SIGNATURE} is the signature of all files by the key {signer}."
    if isinstance(release, PublicLabels):
        return labels_readme(release, license, signature)
    return readme(release.document, license, signature)


def labels_readme(
    labels: PublicLabels, license: str | None = None, signature: str = NOT_SIGNED
) -> str:
    """README.md of labels of public rows: a header in YAML, what they are in plain words, and the
    card.
    """
    header: dict[str, Any] = {
        "pretty_name": labels.document.product.name,
        "tags": TAGS,
        "configs": [{"config_name": "default", "data_files": TABLE}],
    }
    opening = labels_opening(labels.document, labels.release, signature)
    card = labels_card(labels.document, labels.release, opening)
    return f"{_header(header, license)}\n{card}"


def readme(document: Document, license: str | None = None, signature: str = NOT_SIGNED) -> str:
    """README.md of a release: a header in YAML, what it is in plain words, and the card.

    `signature` says who signs it.
    """
    from tacit.releases.card import render_card

    header: dict[str, Any] = {"library_name": "tacit", "pipeline_tag": TASK, "tags": TAGS}
    index: dict[str, Any] = {}
    if not isinstance(document.utility, str):
        results = [_result(document.utility)]
        index["model-index"] = [{"name": document.product.name, "results": results}]
    card = render_card(document, opening_of(document, signature))
    return f"{_header(header, license, index)}\n{card}"


def _header(
    facts: dict[str, Any], license: str | None, further: Mapping[str, Any] | None = None
) -> str:
    """The header in YAML: facts, the license if one is stated, and further facts."""
    import yaml

    header = dict(facts)
    if license is not None:
        _check_license(license)
        header["license"] = license
    header |= further or {}

    # a text stays on one line, however long: yaml folds long ones by default
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=10**6)
    return f"---\n{text}---\n"


def _result(utility: Utility | LabelSetUtility | PaidUtility) -> dict[str, Any]:
    """The measured figures of a document (its item 15) in the form of the hub's evaluation
    results.
    """
    names: tuple[str, ...] = ("accuracy", "balanced_accuracy", "minority_accuracy")
    if isinstance(utility, LabelSetUtility):
        names = ("mean_average_precision", "micro_f1", "macro_f1", "exact_match", "rare_third")
    if isinstance(utility, PaidUtility):
        names = ("accuracy", "balanced_accuracy")
    shares = {name: getattr(utility, name) for name in names}
    # a figure may be missing, or hidden by noise
    metrics = [
        {"type": name, "value": share} for name, share in shares.items() if isinstance(share, float)
    ]
    return {
        "task": {"type": TASK},
        "dataset": {"type": "embeddings", "name": utility.test_set},
        "metrics": metrics,
    }


def _check_license(license: str) -> None:
    """Refuse what cannot be the identifier of a license."""
    if not license.isprintable() or not license.strip() or len(license) > 80:
        raise InputError(
            f"license={license!r:.60} must be the identifier of a license; pass for example"
            " 'apache-2.0'"
        )


def _is_published(folder: Path) -> bool:
    """Tell whether a folder holds a release, and nothing else but what `publish` adds to one."""
    return is_release(folder, besides=(README, SIGNATURE))


def _is_published_labels(folder: Path) -> bool:
    """Tell whether a folder holds labels, and nothing else but what `publish` adds to them."""
    return holds_public_labels(folder, besides=(README, SIGNATURE))
