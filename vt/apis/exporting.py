"""Models for other runtimes: PyTorch programs, ONNX, traces, compiled libraries; each compared with the model itself.

What is exported takes images as the network does, normalised, and gives what the head gives: logits of classes, ``(N,
classes)``, of a segmentor at its head's resolution, ``(N, classes, H, W)``. The batch is open; so is the size, where
the model's code and its libraries' allow it.
"""

import io
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from vt.errors import UserError

Run = Callable[[Tensor], list[np.ndarray]]
SUFFIXES = dict(program='.pt2', onnx='.onnx', torchscript='.ts', aot='.aot.pt2')


class Network(nn.Module):
    """A model as a function of normalised images alone; several outputs are a tuple."""

    def __init__(self, model: BaseModel) -> None:
        super().__init__()
        self.model = model.eval()

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Images ``(N, 3, H, W)``, or clips ``(N, 3, T, H, W)``, to what the head gives."""
        outputs = self.model(images, mode='tensor')
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs


@dataclass
class Program:
    """A model as PyTorch exports it.

    Attributes:
        program: with an open batch.
        open_size: whether it takes images of other sizes.
        reason: what forbids it where it does not.
    """

    program: ExportedProgram
    open_size: bool
    reason: str = ''


@torch.no_grad()
def export_program(network: Network, images: Tensor, others: Sequence[Tensor] = ()) -> Program:
    """Export by ``torch.export``, with an open batch and, if it holds, an open size.

    A library's code may make a size constant; the program then has a guard against other sizes, and is exported with a
    fixed size instead, since other formats have no guards and would be silently wrong.

    Args:
        network: what is exported.
        images: two or more, of the size that the network sees.
        others: of other sizes, which it is tried on.
    """
    batch = {0: Dim('batch', min=1)}
    reason = ''
    if others:
        sides = dict.fromkeys(range(images.ndim - 2, images.ndim), Dim.AUTO)
        try:
            program = torch.export.export(network, (images,), dynamic_shapes=[batch | sides])
            run = program.module()
            for other in others:
                run(other)
            return Program(program, open_size=True)
        except Exception as error:  # whatever a library's code and the guards about it raise
            reason = ' '.join(str(error).split())[:200]
    return Program(torch.export.export(network, (images,), dynamic_shapes=[batch]), open_size=False, reason=reason)


@torch.no_grad()
def encode(kind: str, network: Network, program: Program, images: Tensor) -> tuple[bytes, Run]:
    """A model in a format, and read again from it.

    Args:
        kind: a key of :data:`SUFFIXES`.
        network, program, images: as of :func:`export_program`.

    Returns:
        What a file of the format holds, and a function that runs it: images to the outputs.

    Raises:
        UserError: a package that it needs is not there.
    """
    if kind == 'onnx':
        return _encode_onnx(program.program)
    from torch._inductor import aoti_compile_and_package, aoti_load_package  # documented there, and nowhere else

    file = io.BytesIO()
    with warnings.catch_warnings():
        if kind == 'program':
            torch.export.save(program.program, file)
        elif kind == 'torchscript':
            warnings.simplefilter('ignore')  # tracing is deprecated, and checks of sizes become constants
            torch.jit.save(torch.jit.trace(network, (images,), check_trace=False), file)
        else:
            aoti_compile_and_package(program.program, package_path=file)
        file.seek(0)
        loaded = dict(program=torch.export.load, torchscript=torch.jit.load, aot=aoti_load_package)[kind](file)
    function = loaded.module() if kind == 'program' else loaded

    @torch.no_grad()
    def run(images: Tensor) -> list[np.ndarray]:
        return as_arrays(function(images))

    return file.getvalue(), run


def _encode_onnx(program: ExportedProgram) -> tuple[bytes, Run]:
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - the exporter needs it
    except ImportError as error:
        raise UserError(
            "onnx needs onnx, onnxscript and onnxruntime: pip install 'visual-transformers[export]'"
        ) from error
    logging.getLogger('onnxscript').setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about names of open sizes
        content = torch.onnx.export(program, (), dynamo=True, verbose=False).model_proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(content, options, providers=['CPUExecutionProvider'])
    (given,) = session.get_inputs()
    return content, lambda x: session.run(None, {given.name: x.numpy()})


def as_arrays(outputs: Tensor | Sequence[Tensor]) -> list[np.ndarray]:
    """What a network gives, as arrays."""
    return [output.numpy() for output in ([outputs] if isinstance(outputs, Tensor) else outputs)]


def largest_difference(run: Run, network: Network, images: Tensor) -> float:
    """Of what an exported model gives for images from what the model itself does, over the largest of its values."""
    with torch.no_grad():
        expected = as_arrays(network(images))
    found = run(images)
    if [one.shape for one in found] != [other.shape for other in expected]:
        return float('inf')
    differences = [np.abs(one - other).max() / np.abs(other).max() for one, other in zip(found, expected)]
    return float(np.max(differences)) if np.isfinite(differences).all() else float('inf')  # NaN is no small difference
