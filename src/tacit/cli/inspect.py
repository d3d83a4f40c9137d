"""`tacit inspect`: what a release says, checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import check_outside, say
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.options import Json
from tacit.errors import InputError, NothingDoneError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tacit.privacy.guarantee import Guarantee
    from tacit.releases.gate import Verdict


def inspect(
    release: Path,
    /,
    *,
    key: Path | None = None,
    registry: Path | None = None,
    require: Path | None = None,
    ledger: Path | None = None,
    dossier: Path | None = None,
    json: Json = False,
    force: bool = False,
) -> None:
    """Check a release (hashes, arrays, every stated number) and print its card; or hold it against
    a policy.

    Parameters
    ----------
    release
        Folder of a release, of a summary (tacit summarise), or of labels of public rows (tacit
        label-public).
    key
        Also check that the owner of this public key, a PEM file, signed all files; needs the extra
        hub.
    registry
        Also write an entry for a registry of deployments, as YAML.
    require
        Hold the release against this policy, a file of TOML, in place of printing its card: one
        line for each rule, and exit status 1 where a rule is not met.
    ledger
        For --require: the ledger of the private data, of which all charges then count.
    dossier
        Also write a page for those who decide whether the release may leave, FILE.html, and the
        same facts as FILE.json. With --require it has the answer of each rule.
    force
        Overwrite the YAML file, or the page and its JSON file.
    """
    if dossier is not None:
        _check_dossier(dossier, release, force=force)
    if require is not None:
        _check_alone(registry)
        _check_no_summary("--require", release)
        _require(release, require, ledger, key, dossier, json=json, force=force)
        return
    if ledger is not None:
        raise InputError(
            f"--ledger {ledger} is for a policy; give one with --require FILE, or see tacit ledger"
        )
    from tacit.compute.atomic import atomic_file
    from tacit.releases.reading import LABELS_DOCUMENT, SUMMARY_DOCUMENT
    from tacit.releases.registry import registry_yaml
    from tacit.releases.release import Release

    if release.suffix == ".json" and release.is_file():
        raise InputError(
            f"{release} is a file; give the folder of a release, or see tables of paid figures by"
            f" tacit evaluate RELEASE --tables {release}"
        )
    signed = _signed(release, key)
    if (release / LABELS_DOCUMENT).exists():
        if registry is not None:
            raise InputError(
                f"--registry does not apply to {release}, which holds labels; inspect the release"
                " that made them"
            )
        _inspect_labels(release, signed, json=json)
        return
    if (release / SUMMARY_DOCUMENT).exists():
        if registry is not None:
            _check_no_summary("--registry", release)
        _inspect_summary(release, signed, json=json)
        return
    loaded = Release.load(release).verify()
    if registry is not None:
        check_outside(registry, release)
        entry = registry_yaml(loaded.document)
        with atomic_file(registry, force=force) as temporary:
            temporary.write_text(entry, encoding="utf-8")
    if dossier is not None:
        _write_dossier(dossier, release, key, None, force=force, quiet=json)
    if json:
        _print_verified(loaded.guarantee, signed, {"document": loaded.document})
        return
    say(
        f"{release}: verified; hashes, arrays and every stated number about privacy agree with the"
        " recorded events"
    )
    say(f"{signed}\n")
    say(loaded.card())


def _check_alone(registry: Path | None) -> None:
    """Refuse to write an entry of a registry beside the answer of a gate."""
    if registry is not None:
        raise InputError(
            f"--registry {registry} and --require exclude each other; write the entry once the"
            " release may leave"
        )


def _check_no_summary(option: str, folder: Path) -> None:
    """Refuse a summary, where an option is for releases."""
    from tacit.releases.reading import SUMMARY_DOCUMENT

    if (folder / SUMMARY_DOCUMENT).exists():
        raise InputError(
            f"{option} does not apply: {folder} holds a summary; inspect the release that is made"
            f" of it with tacit combine {folder} --out RELEASE"
        )


def _check_dossier(out: Path, release: Path, *, force: bool) -> None:
    """Refuse a dossier of labels, or one that cannot be written, before any work."""
    from tacit.releases.reading import LABELS_DOCUMENT
    from tacit.report.dossier import check_outputs, twin_of

    if (release / LABELS_DOCUMENT).exists():
        raise InputError(
            f"--dossier does not apply to {release}, which holds labels; inspect the release that"
            " made them"
        )
    _check_no_summary("--dossier", release)
    for path in (out, twin_of(out)):
        check_outside(path, release)
    check_outputs(out, force=force)


def _write_dossier(
    out: Path,
    release: Path,
    key: Path | None,
    verdict: "Verdict | None",
    *,
    force: bool,
    quiet: bool,
) -> None:
    """Write the dossier of a release as of today, and say where it is."""
    from tacit.report.dossier import dossier, examined, save, today, twin_of

    save(out, dossier(*examined(release, key, today(), verdict)), force=force)
    if not quiet:
        say(f"{out}: the dossier, which needs no network; {twin_of(out)} has the same facts\n")


def _require(
    release: Path,
    require: Path,
    ledger: Path | None,
    key: Path | None,
    dossier: Path | None,
    *,
    json: bool,
    force: bool,
) -> None:
    """Print the answer of each rule, and end with status 1 where one is not met.

    A release that does not verify has no dossier.
    """
    from dataclasses import asdict

    from tacit.releases.gate import decide
    from tacit.releases.policy import Policy

    verdict = decide(release, Policy.read(require), ledger=ledger, key=key)
    verified = verdict.rulings[0].met
    if dossier is not None and verified:
        _write_dossier(dossier, release, key, verdict, force=force, quiet=json)
    if json:
        print_json(
            {
                "met": verdict.met,
                "document": verdict.document,
                "sha256": verdict.sha256,
                "rules": [asdict(ruling) for ruling in verdict.rulings],
                "unchecked": verdict.unchecked,
            }
        )
    else:
        width = max(len(ruling.rule) for ruling in verdict.rulings)
        for ruling in verdict.rulings:
            answer = "met    " if ruling.met else "not met"
            say(f"{answer}  {ruling.rule:{width}}  {ruling.line}")
        if verdict.unchecked:
            say(
                f"\nNot checked, since the policy does not state it: {', '.join(verdict.unchecked)}"
            )
    if not verdict.met:
        raise NothingDoneError(verdict.sentence)
    if not json:
        say(f"\nyes: {verdict.sentence}")


def _inspect_labels(folder: Path, signed: str, *, json: bool) -> None:
    """Check labels of public rows and print their card, or their documents as JSON."""
    from tacit.releases.public_labels import PublicLabels

    labels = PublicLabels.load(folder).verify()
    if json:
        documents = {"document": labels.document, "release": labels.release}
        _print_verified(labels.guarantee, signed, documents)
        return
    say(
        f"{folder}: verified; hashes, counts of labels and every stated number about privacy agree"
        " with the recorded events"
    )
    say(f"{signed}\n")
    say(labels.card())


def _inspect_summary(folder: Path, signed: str, *, json: bool) -> None:
    """Check a summary and print its card, or its document as JSON."""
    from tacit.releases.summary import Summary

    summary = Summary.load(folder).verify()
    if json:
        _print_verified(summary.guarantee, signed, {"document": summary.document})
        return
    say(
        f"{folder}: verified; hashes, sums and every stated number about privacy agree with the"
        " recorded events"
    )
    say(f"{signed}\n")
    say(summary.card())


def _print_verified(
    guarantee: "Guarantee", signed: str, documents: Mapping[str, "BaseModel"]
) -> None:
    """Print documents that were verified as JSON, by name."""
    shown = {name: document.model_dump(mode="json") for name, document in documents.items()}
    print_json({"verified": True, "signature": signed, **guarantee_facts(guarantee), **shown})


def _signed(release: Path, key: Path | None) -> str:
    """One line on who signed a release; with a key the signature is checked."""
    from tacit.releases.reading import SIGNATURE
    from tacit.releases.signing import check_signature

    if key is not None:
        return f"{release}: all files are signed by the key {check_signature(release, key)}"
    if (release / SIGNATURE).exists():
        return (
            f"{release}: has a signature that was not checked; give the signer's public key with"
            " --key"
        )
    return f"{release}: not signed, so nothing shows who made it"
