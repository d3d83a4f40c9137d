"""ray, of the extra `cluster`."""

from typing import Any

from tacit.compute.extras import check_installed


def load_ray() -> Any:
    """Return ray, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    check_installed("ray")
    import ray

    return ray
