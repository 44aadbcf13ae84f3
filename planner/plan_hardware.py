"""Which chips the usual training and media software runs on at all.

PyTorch ships builds for NVIDIA (compute capability 5.0 and up) and for AMD under ROCm
(https://pytorch.org/get-started/locally/, https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/system-requirements.html).
TPUs train under JAX (https://github.com/AI-Hypercomputer/maxtext). Inference chips do not train.
"""

from __future__ import annotations

from catalog.types import Accelerator
from planner.reasons import Reason, reason
from planner.request import Request

_TORCH_VENDORS = frozenset({"NVIDIA", "AMD"})
_LEAST_CAPABILITY = 5.0
_JAX_FRAMEWORKS = frozenset({"maxtext", "jax"})


def software_refusal(accelerator: Accelerator, request: Request) -> Reason | None:
    """Why the workload's software does not run on this chip; None where it does."""
    framework = (request.framework or "").casefold()
    if accelerator.vendor == "Google" and (framework in _JAX_FRAMEWORKS):
        return None
    if accelerator.vendor in _TORCH_VENDORS and _capability(accelerator) >= _LEAST_CAPABILITY:
        return None
    return reason("unsupported_engine", engine=request.framework or "pytorch", gpu=accelerator.gpu)


def _capability(accelerator: Accelerator) -> float:
    """NVIDIA's compute capability; other vendors name targets, which are all new enough."""
    try:
        return float(accelerator.compute_capability)
    except ValueError:
        return _LEAST_CAPABILITY
