"""What processes that learn import: once for all of them, and beside the first process."""

from stream.config.workers import WorkersConfig
from stream.workers.fork_server import begin_fork_server

PRELOADED = (
    "stream.run.worker",
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",
)


def begin_importing(workers: WorkersConfig) -> None:
    """Have the workers of a run import from now on, while this process does the same."""
    if workers.used and workers.engine == "processes":
        begin_fork_server(PRELOADED)
