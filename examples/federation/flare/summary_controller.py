"""The server: ask every owner once, and combine what arrives."""

import os
from pathlib import Path

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

import server


class SummaryController(Controller):
    """One round of the task `summarise`.

    Parameters
    ----------
    timeout : int
        Seconds to wait for replies.
    """

    def __init__(self, timeout: int = 600) -> None:
        super().__init__()
        self.timeout = timeout
        self.replies: dict[str, dict[str, bytes]] = {}

    def start_controller(self, fl_ctx: FLContext) -> None:
        self.folder = Path(os.environ["FEDERATION"])

    def stop_controller(self, fl_ctx: FLContext) -> None:
        pass

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        owners = fl_ctx.get_engine().get_clients()
        request = Shareable()
        request["recipe"] = server.request(self.folder)
        task = Task("summarise", request, timeout=self.timeout, result_received_cb=self._received)
        self.broadcast_and_wait(task, fl_ctx, min_responses=len(owners), abort_signal=abort_signal)
        self.log_info(fl_ctx, server.combine(self.replies, self.folder, asked=len(owners)))

    def _received(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        """Take a reply; that of an owner that failed has no files."""
        if "files" in client_task.result:
            self.replies[client_task.client.name] = client_task.result["files"]

    def process_result_of_unknown_task(
        self,
        client: object,
        task_name: str,
        client_task_id: str,
        result: Shareable,
        fl_ctx: FLContext,
    ) -> None:
        """Leave out a reply that comes too late; the next round gets it."""
