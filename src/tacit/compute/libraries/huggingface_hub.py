"""huggingface_hub, the client of the Hugging Face Hub, of the extra `hub`; encoders find weights
with it.
"""

from typing import Any

from tacit.compute.extras import check_installed


def load_huggingface_hub() -> Any:
    """Return huggingface_hub, imported on the first call; InputError that names the extra if it is
    not installed.
    """
    check_installed("huggingface_hub")
    import huggingface_hub
    import huggingface_hub.errors

    return huggingface_hub
