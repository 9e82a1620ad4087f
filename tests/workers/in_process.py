"""An engine whose workers are objects of the test's own process: jobs end in another order."""

import pickle
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

PICKLE = pickle.HIGHEST_PROTOCOL


class Value:
    """A `Shared` value: bytes, as in other processes."""

    def __init__(self, value: Any):
        self._content = pickle.dumps(value, PICKLE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other._content is self._content

    def __hash__(self) -> int:
        return id(self._content)

    def get(self) -> Any:
        return pickle.loads(self._content)


class OneWorker:
    """A `Worker`."""

    def __init__(self, engine: "InProcess"):
        self.kept: dict[str, Any] = {}
        self._engine = engine

    def tell(self, message: Any) -> None:
        self._engine.told.append(pickle.loads(pickle.dumps(message, PICKLE)))

    def stopping(self) -> bool:
        return self._engine.stopped


class InProcess:
    """An `Engine` that does the newest job first, one whenever it is asked for messages."""

    def __init__(self, slots: int, before: Callable[[str], None] = lambda job: None):
        self.slots = slots
        self.told: list[Any] = []
        self.stopped = False
        self.done: list[str] = []
        self._before = before
        self._workers = [OneWorker(self) for _ in range(slots)]
        self._open: list[tuple[str, Future[Any], tuple[Any, ...]]] = []

    def __enter__(self) -> "InProcess":
        return self

    def __exit__(self, *of_error: object) -> None:
        self.stopped = True

    def share(self, value: Any) -> Value:
        return Value(value)

    def submit(self, job: str, function: Any, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        shared = {id(a): a for a in arguments if isinstance(a, Value)}  # stay what they are
        passed = [
            a if id(a) in shared else pickle.loads(pickle.dumps(a, PICKLE)) for a in arguments
        ]
        self._open.append((job, future, (function, passed, named)))
        return future

    def messages(self) -> list[Any]:
        if self._open:
            self._do(*self._open.pop())
        told, self.told = self.told, []
        return told

    def _do(self, job: str, future: Future[Any], call: tuple[Any, ...]) -> None:
        function, passed, named = call
        worker = self._workers[len(self.done) % self.slots]
        self.done.append(job)
        self._before(job)
        try:
            result = function(worker, *passed, **named)
        except Exception as error:  # noqa: BLE001 - the run raises it
            future.set_exception(error)
        else:
            future.set_result(pickle.loads(pickle.dumps(result, PICKLE)))

    def stop(self) -> None:
        """The oldest job is stopped after a step, and the others do not begin."""
        self.stopped = True
        for number, (job, future, call) in enumerate(self._open):
            if number == 0:
                self._do(job, future, call)
            else:
                future.set_exception(CancelledError())
        self._open = []
