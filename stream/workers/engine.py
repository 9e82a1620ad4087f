"""What an engine of workers is: functions in, futures out, and one small voice on the way.

A function that is submitted must be found by its module's name, and begins with the worker that
runs it::

    def learn_task(worker: Worker, setup: Shared, index: int) -> Learned: ...

    future = engine.submit("learning sst2", learn_task, setup, 3)

Arguments, results and errors are pickled. Large ones that several jobs read are put into the
engine once, with `Engine.share`; the function calls ``get`` where it needs them.
"""

from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

ATTEMPTS = 3
"""How often a job is done before a worker that dies of it is an error."""

P = ParamSpec("P")
T = TypeVar("T")


class WorkerLostError(RuntimeError):
    """A worker died of the same job again and again. The message names the job."""

    def __init__(self, job: str, why: str = ""):
        reason = f" ({why})" if why else ""
        super().__init__(
            f"{job}: the worker died {ATTEMPTS} times{reason}; was it ended from outside, or was "
            "there too little memory for workers.count of them?"
        )


class Shared(Protocol):
    """A value that was put once where every worker can read it."""

    def get(self) -> Any:
        """Return the value; on a worker arrays may be mapped, so treat it as read-only."""


class Worker(Protocol):
    """The process that runs a function, as the function sees it.

    Attributes:
        kept: what functions keep in this process from one job to the next; empty in a new one.
    """

    kept: dict[str, Any]

    def tell(self, message: Any) -> None:
        """Have `Engine.messages` return a message, soon; it may be lost if this process dies."""

    def stopping(self) -> bool:
        """Whether `Engine.stop` was called: return what there is. Cheap enough for every step."""
        ...


class Engine(Protocol):
    """Workers; used in a ``with`` block, behind which there are none.

    Attributes:
        slots: how many jobs run at once.
    """

    slots: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def share(self, value: Any) -> Shared:
        """Put a value where every worker can read it."""
        ...

    def submit(
        self,
        job: str,
        function: Callable[Concatenate[Worker, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> Future[T]:
        """Have a worker call a function; jobs begin in the order in which they were submitted.

        The future has the function's result or its error. If the worker dies, the job is done
        again, `ATTEMPTS` times in all; then its error is a `WorkerLostError`.

        Args:
            job: what it is, in a few words, for messages.
            function: of a module, so that it is found by its name.
            arguments: what follows the worker.
            named: the same by name.
        """
        ...

    def messages(self) -> list[Any]:
        """Return what workers have told since the last call, in the order of each worker.

        A `logging.LogRecord` is not among them: the engine has given it to the logger of its name.
        """
        ...

    def stop(self) -> None:
        """Cancel the jobs that have not begun, and have `Worker.stopping` say so to the others."""
        ...
