"""Where weights are: a local folder, or the local cache of the Hugging Face hub. Nothing is ever downloaded here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.errors import InputError

EXTRA = "encoders"


def folder_of(repository: str, weights: Path | None) -> Path:
    """The folder that holds a model's files.

    Parameters
    ----------
    repository : str
        Its name on the hub.
    weights : path or None
        The folder, if it was given.

    Raises
    ------
    InputError
        If it is neither given nor in the cache; the message has the command that gets it.
    """
    if weights is not None:
        if not weights.is_dir():
            raise InputError(f"--weights {weights} is not a folder; give the one that holds the model's files")
        return weights
    if Path(repository).is_dir():
        return Path(repository)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise missing(repository) from error


def missing(repository: str) -> InputError:
    """The error for weights that are not on this machine."""
    return InputError(
        f"no weights of {repository} on this machine; get them with `hf download {repository}` where there is a "
        "network, or give a folder that holds them with --weights"
    )


def weight_files(folder: Path) -> list[Path]:
    """Files of tensors in a folder, safetensors first."""
    found = [path for ending in (".safetensors", ".bin", ".pt", ".pth") for path in sorted(folder.glob(f"*{ending}"))]
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars of transformers within the block."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def other_files(folder: Path) -> list[Path]:
    """The files of a model that are no weights: settings, vocabularies, how it pools."""
    endings = (".json", ".txt", ".model", ".jinja")
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in endings)


def unloadable(what: str, folder: Path | None, error: BaseException) -> InputError:
    """The error for files that do not make a model."""
    said = " ".join(str(error).split())[:300]
    where = "" if folder is None else f" from {folder}"
    return InputError(f"{what} cannot be loaded{where} ({said}); check its name and its files")


def state_of(path: Path) -> dict[str, Any]:
    """The tensors of a file: safetensors, or what torch saved, of which only tensors are read."""
    import torch

    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file may raise anything
        raise unloadable("weights", path, error) from error
    inner = state.get("state_dict", state) if isinstance(state, dict) else None
    if not isinstance(inner, dict):
        raise InputError(f"{path} holds no state dict; save one with torch.save(model.state_dict(), ...)")
    return inner
