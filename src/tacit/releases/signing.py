"""Signatures of release folders by model_signing, with keys of elliptic curves and without network.

Every file of the folder is signed, except the signature itself and what git and the clients of
model hubs add: a changed, missing or further file fails the check. A key is named by its
fingerprint, the SHA-256 of its public PEM file.
"""

from __future__ import annotations

import hashlib
import stat
from ast import literal_eval
from pathlib import Path
from typing import Any

from tacit.compute.extras import check_installed
from tacit.errors import InputError, ReleaseError, excerpt
from tacit.releases.reading import AGAIN, OF_TRANSPORT, SIGNATURE

PRIVATE = "an unencrypted PEM file of a P-256, P-384 or P-521 private key"
PUBLIC = "the PEM file of a P-256, P-384 or P-521 public key"
LARGEST = 2**20  # bytes of a signature
CURVES = ("secp256r1", "secp384r1", "secp521r1")


def sign(folder: Path, key: Path) -> None:
    """Sign the files of a folder with a private key.

    The signature, `model.sig`, also states the folder's name.

    Raises
    ------
    InputError
        If model_signing is not installed, or the file is no such key.
    """
    _check_installed()
    from model_signing import signing

    fingerprint(key, private=True)
    config = signing.Config().use_elliptic_key_signer(private_key=key)
    config.set_hashing_config(_hashing()).sign(folder, folder / SIGNATURE)


def check_signature(folder: Path | str, key: Path | str) -> str:
    """Check that the owner of a public key signed the files of a folder; returns the key's
    fingerprint.

    Parameters
    ----------
    folder : str or Path
        A published release, or any folder that was signed in the same way.
    key : str or Path
        PEM file of the public key, from a source that is trusted to name the signer.

    Raises
    ------
    ReleaseError
        If there is no signature, another key made it, or a file was changed, added or removed
        since.
    InputError
        If model_signing is not installed, or the file is no such key.
    """
    _check_installed()
    from model_signing import verifying

    folder, key = Path(folder), Path(key)
    real = folder.resolve()  # a link to a folder is followed, links within are not
    found = fingerprint(key, private=False)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in OF_TRANSPORT and (
            path.is_symlink() or (path.exists() and not path.is_file())
        ):
            raise ReleaseError(
                f"{path} is a link or not a plain file, which a signature does not cover; {AGAIN}"
            )
    if not (folder / SIGNATURE).is_file():
        raise ReleaseError(
            f"{folder} has no signature ({SIGNATURE}); get a signed release, or leave the key out"
        )
    if (size := (folder / SIGNATURE).stat().st_size) > LARGEST:
        raise ReleaseError(
            f"{folder / SIGNATURE} has {size} bytes, at most {LARGEST} are read; {AGAIN}"
        )
    config = verifying.Config().use_elliptic_key_verifier(public_key=key)
    try:
        config.set_hashing_config(_hashing()).verify(real, real / SIGNATURE)
    except Exception as error:  # a forged signature may raise anything
        raise ReleaseError(f"{folder}: {_fault(error, key)}; {AGAIN}") from error
    return found


def _check_installed() -> None:
    check_installed("model_signing")
    check_installed("OpenSSL")  # which model_signing needs, and does not bring


def _hashing() -> Any:
    from model_signing import hashing

    return hashing.Config().set_ignored_paths(
        paths=(SIGNATURE, *OF_TRANSPORT), ignore_git_paths=False
    )


def _fault(error: Exception, key: Path) -> str:
    said = str(error)
    if said.startswith("Signature mismatch"):
        differences = [
            one.partition(": Expected")[0] for one in literal_eval(said.partition(": ")[2])
        ]
        return f"not what was signed: {excerpt('; '.join(differences))}"
    if said.startswith("Key mismatch"):
        return f"{SIGNATURE} was made by another key than {key}"
    return f"{SIGNATURE} is no valid signature by {key} ({excerpt(said) or type(error).__name__})"


def fingerprint(key: Path, *, private: bool) -> str:
    """The SHA-256 of the PEM file of the public key, which is read from it or from its private
    key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        if not stat.S_ISREG(key.stat().st_mode):
            raise _no_key(key, private, "is not a plain file")
        data = key.read_bytes()
    except OSError as error:
        raise _no_key(key, private, f"cannot be read ({error.strerror})") from error
    try:
        public = (
            serialization.load_pem_private_key(data, None).public_key()
            if private
            else serialization.load_pem_public_key(data)
        )
    except TypeError as error:
        raise _no_key(key, private, "is encrypted") from error
    except ValueError as error:
        other = b"PUBLIC KEY" if private else b"PRIVATE KEY"
        said = f"is a {other.decode().lower()}" if other in data else "cannot be parsed"
        raise _no_key(key, private, said) from error
    if not isinstance(public, ec.EllipticCurvePublicKey):
        raise _no_key(
            key,
            private,
            f"is a key of another algorithm ({type(public).__name__.removesuffix('PublicKey')})",
        )
    if public.curve.name not in CURVES:
        raise _no_key(key, private, f"is a key of the curve {public.curve.name}")
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(pem).hexdigest()


def _no_key(key: Path, private: bool, fault: str) -> InputError:
    needed = PRIVATE if private else PUBLIC
    return InputError(
        f"key {key} {fault}; give {needed}, docs/using-a-release.md shows how to make one"
    )
