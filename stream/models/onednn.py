"""Linear maps on a CPU through oneDNN.

torch multiplies float32 matrices with MKL on x86, which uses half the vector width of current AMD
processors; its convolutions go through oneDNN, which does not. A linear map is a 1 x 1
convolution, and a [B, L, D] tensor is already laid out as one (channels last), so nothing is
copied. With one thread torch takes a slow convolution of its own instead, so there the linear map
stays one. `benchmarks/speed/cpu_linear.py` measures both.
"""

import torch
from torch import nn
from torch.nn import functional


class ConvolvedLinear(nn.Linear):
    """`nn.Linear` with the same parameters and the same result up to float32 rounding."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Map [..., D_in] to [..., D_out]."""
        usual = not input.is_cpu or input.dtype != torch.float32 or input.numel() == 0
        if usual or torch.get_num_threads() == 1 or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        pixels = input.reshape(1, -1, 1, self.in_features).permute(0, 3, 1, 2)
        kernel = self.weight[:, :, None, None]
        output = functional.conv2d(pixels, kernel, self.bias)
        return output.permute(0, 2, 3, 1).reshape(*input.shape[:-1], self.out_features)


def convolve_linears(module: nn.Module) -> None:
    """Let every `nn.Linear` inside compute as a convolution, where oneDNN is there.

    Names and parameters stay; only the class changes, so hooks and state dictionaries do too.
    """
    if not torch.backends.mkldnn.is_available():
        return
    for inner in module.modules():
        if type(inner) is nn.Linear:
            inner.__class__ = ConvolvedLinear
