"""What methods share that may learn a prompt through an MLP, which is left out afterwards.

While a task is learned, `Reparameterization` makes the values of the prompt: they are written into
the encoder after every step, so that what is served, stored and counted is the prompt alone. The
prompt's gradient is passed on to the MLP, and the prompt itself takes no step.
"""

from dataclasses import dataclass

import torch

from stream.config.setting import WIDEST, at_least, setting
from stream.data.batch import Batch
from stream.data.task import Task
from stream.learners.base import Learner
from stream.models.modules.reparameterization import Reparameterization
from stream.seeding import torch_generator


@dataclass
class Reparameterized(Learner):
    """Learn vectors, as they are or through an MLP.

    Attributes:
        mlp: learn the vectors as the output of an MLP of two layers, which is gone afterwards. Its
            weights are learned at ``lr`` too, and want a lower one than vectors by themselves.
        mlp_size: units of the MLP.
    """

    mlp: bool = False
    mlp_size: int = setting(800, at_least(1, WIDEST), needs={"mlp": True})

    def made(self, task: Task) -> list[torch.nn.Parameter]:
        """Return the vectors of ``task`` in the order in which the MLP makes them."""
        raise NotImplementedError

    def learn_through(self, made_by: Reparameterization) -> None:
        """Take the MLP; call it in `setup`, with ``mlp``."""
        self.model.reparameterization = made_by.to(self.model.device)

    @property
    def _made_by(self) -> Reparameterization:
        """The MLP."""
        module = self.model.reparameterization
        assert isinstance(module, Reparameterization)
        return module

    def begin_task(self, task: Task) -> None:
        """Start an MLP anew for the task."""
        self._made: list[torch.nn.Parameter] = []
        if self.mlp:
            self._made = self.made(task)
            self._made_by.initialize(torch_generator(self.seed, "reparameterization", task.name))
            self._made_by.take([vectors.detach() for vectors in self._made])
            self._write()

    def after_backward(self, batch: Batch) -> None:
        """Pass the vectors' gradients on to the MLP, and keep the optimizer off the vectors."""
        if self.mlp:
            gradients = [vectors.grad for vectors in self._made]
            torch.autograd.backward(self._made_by(), gradients)
            for vectors in self._made:
                vectors.grad = None

    def after_step(self, batch: Batch) -> None:
        """Show what the MLP makes now."""
        if self.mlp:
            self._write()

    def _write(self) -> None:
        """Write what the MLP makes into the encoder."""
        with torch.no_grad():
            for vectors, values in zip(self._made, self._made_by(), strict=True):
                vectors.copy_(values)
