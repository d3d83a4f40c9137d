"""Telemetry of the libraries that tacit uses, disabled by the environment variables that they read.

`import tacit` sets the variables, before any of the libraries is imported: onnxruntime reads its
variable at import, resolves a host there, and writes an id of the machine to the user's cache.
Processes that tacit starts inherit them.
"""

import os

OPT_OUTS = {
    "HF_HUB_DISABLE_TELEMETRY": "1",  # huggingface_hub and transformers
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # onnxruntime from 1.29 on; its function disable_telemetry_events comes too late
    "ORT_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""The value by which each variable disables telemetry."""


def disable_telemetry() -> None:
    """Set each variable of OPT_OUTS that the user has not set."""
    for variable, value in OPT_OUTS.items():
        os.environ.setdefault(variable, value)
