"""The client: hand the request to the owner's code, and send back what it returns."""

import os
from pathlib import Path

from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

import owner


class SummaryExecutor(Executor):
    """Answer the task `summarise`.

    The owner's folder has the name of the site, and lies in the folder that the environment
    variable FEDERATION names.
    """

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        if task_name != "summarise":
            return make_reply(ReturnCode.TASK_UNKNOWN)
        folder = Path(os.environ["FEDERATION"]) / fl_ctx.get_identity_name()
        reply = make_reply(ReturnCode.OK)
        reply["files"] = owner.reply(folder, shareable["recipe"])
        return reply
