"""Signatures of release folders by model_signing, with keys of elliptic curves and without network.

Every file of the folder is signed, except the signature itself and what git and the clients of
model hubs add: a changed, missing or further file fails the check. A key is named by its
fingerprint, the SHA-256 of its public PEM file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from ast import literal_eval
from pathlib import Path
from typing import Any

from tacit.compute.extras import check_installed
from tacit.errors import InputError, ReleaseError, excerpt
from tacit.releases.opening import NOT_SIGNED
from tacit.releases.reading import AGAIN, OF_TRANSPORT, SIGNATURE

# The files that errors ask for.
PRIVATE = "an unencrypted PEM file of a P-256, P-384 or P-521 private key"
PUBLIC = "the PEM file of a P-256, P-384 or P-521 public key"

# Most bytes of a signature.
LARGEST = 2**20

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

    folder = Path(folder)
    key = Path(key)
    signer = fingerprint(key, private=False)

    _check_files(folder)
    signature = folder / SIGNATURE
    if not signature.is_file():
        raise ReleaseError(
            f"{folder} has no signature ({SIGNATURE}); get a signed release, or leave the key out"
        )
    size = signature.stat().st_size
    if size > LARGEST:
        raise ReleaseError(f"{signature} has {size} bytes, at most {LARGEST} are read; {AGAIN}")

    # A link to the folder is followed; links within it were refused.
    target = folder.resolve()
    config = verifying.Config().use_elliptic_key_verifier(public_key=key)
    try:
        config.set_hashing_config(_hashing()).verify(target, target / SIGNATURE)
    except Exception as error:
        # a forged signature may raise anything
        raise ReleaseError(f"{folder}: {_fault(error, key)}; {AGAIN}") from error
    return signer


def signature_words(folder: Path, key: Path | None) -> str:
    """Say who signed a folder, for people; with a public key the signature is checked now.

    Errors are those of `check_signature`.
    """
    if key is not None:
        return f"All files are signed by the key {check_signature(folder, key)}; checked."
    if os.path.lexists(folder / SIGNATURE):
        return "There is a signature, which was not checked."
    return NOT_SIGNED


def _check_installed() -> None:
    check_installed("model_signing")
    # which model_signing needs, and does not bring
    check_installed("OpenSSL")


def _check_files(folder: Path) -> None:
    """Refuse links and folders in a folder, if it exists: a signature does not cover them."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        is_other_kind = path.is_symlink() or (path.exists() and not path.is_file())
        if is_other_kind and path.name not in OF_TRANSPORT:
            raise ReleaseError(
                f"{path} is a link or not a plain file, which a signature does not cover; {AGAIN}"
            )


def _hashing() -> Any:
    """The files that are hashed: all but the signature and those of git and of model hubs."""
    from model_signing import hashing

    return hashing.Config().set_ignored_paths(
        paths=(SIGNATURE, *OF_TRANSPORT), ignore_git_paths=False
    )


def _fault(error: Exception, key: Path) -> str:
    """Say what model_signing found wrong, by the beginning of its message."""
    message = str(error)
    if message.startswith("Signature mismatch"):
        # the rest is a list of sentences, of which those on a changed file end with its hashes
        sentences = literal_eval(message.partition(": ")[2])
        without_hashes = [sentence.partition(": Expected")[0] for sentence in sentences]
        return f"not what was signed: {excerpt('; '.join(without_hashes))}"
    if message.startswith("Key mismatch"):
        return f"{SIGNATURE} was made by another key than {key}"
    reason = excerpt(message) or type(error).__name__
    return f"{SIGNATURE} is no valid signature by {key} ({reason})"


def fingerprint(key: Path, *, private: bool) -> str:
    """The SHA-256 of the PEM file of the public key, which is read from it or from its private
    key.
    """
    _check_installed()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    public_key = _public_key(key, _key_file(key, private), private)
    if not isinstance(public_key, ec.EllipticCurvePublicKey):
        algorithm = type(public_key).__name__.removesuffix("PublicKey")
        raise _no_key(key, private, f"is a key of another algorithm ({algorithm})")
    if public_key.curve.name not in CURVES:
        raise _no_key(key, private, f"is a key of the curve {public_key.curve.name}")

    pem = public_key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(pem).hexdigest()


def _key_file(key: Path, private: bool) -> bytes:
    """Read the file of a key."""
    try:
        if not stat.S_ISREG(key.stat().st_mode):
            raise _no_key(key, private, "is not a plain file")
        return key.read_bytes()
    except OSError as error:
        raise _no_key(key, private, f"cannot be read ({error.strerror})") from error


def _public_key(key: Path, data: bytes, private: bool) -> Any:
    """Return the public key in the bytes of a PEM file, or that of the private key in them."""
    from cryptography.hazmat.primitives import serialization

    try:
        if private:
            return serialization.load_pem_private_key(data, None).public_key()
        return serialization.load_pem_public_key(data)
    except TypeError as error:
        raise _no_key(key, private, "is encrypted") from error
    except ValueError as error:
        fault = "cannot be parsed"
        if private and b"PUBLIC KEY" in data:
            fault = "is a public key"
        elif not private and b"PRIVATE KEY" in data:
            fault = "is a private key"
        raise _no_key(key, private, fault) from error


def _no_key(key: Path, private: bool, fault: str) -> InputError:
    """The error for a file that is not a key of the kind that is needed."""
    remedy = PRIVATE if private else PUBLIC
    return InputError(
        f"key {key} {fault}; give {remedy}, docs/using-a-release.md shows how to make one"
    )
