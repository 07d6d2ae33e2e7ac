"""Export of models: PyTorch programs, ONNX, 8-bit ONNX, OpenVINO, compiled libraries.

An exported model takes normalised images and returns the output of the head: logits ``(N, classes)``, or ``(N, classes,
H, W)`` at the resolution of a segmentor's head. The batch size is dynamic; so is the image size, if the code of the
model and of its libraries supports it.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from vt.errors import UserError
from vt.files import write_atomically

Forward = Callable[[Tensor], list[np.ndarray]]
SUFFIXES = dict(program='.pt2', onnx='.onnx', int8='.int8.onnx', openvino='.xml', aot='.aot.pt2')


class Network(nn.Module):
    """Model as a function of normalised images; several outputs are a tuple."""

    def __init__(self, model: BaseModel) -> None:
        super().__init__()
        self.model = model.eval()

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the output of the head for images ``(N, 3, H, W)`` or clips ``(N, 3, T, H, W)``."""
        outputs = self.model(images, mode='tensor')
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs


@dataclass
class Program:
    """Model exported by PyTorch.

    Attributes:
        program: the program, with a dynamic batch size.
        open_size: whether the image size is dynamic, too.
        reason: why the image size is fixed.
    """

    program: ExportedProgram
    open_size: bool
    reason: str = ''

    @cached_property
    def onnx(self) -> bytes:
        """The program as the content of an ONNX file."""
        exported: Any = torch.onnx.export(self.program, (), dynamo=True, verbose=False)
        return exported.model_proto.SerializeToString()


@torch.no_grad()
def export_program(network: Network, images: Tensor, others: Sequence[Tensor] = ()) -> Program:
    """Export with ``torch.export``, with a dynamic batch size and, if possible, a dynamic image size.

    If the code of a library makes the size constant, the program has a guard against other sizes. It is then exported
    with a fixed size, because other formats have no guards and would give wrong results without an error.

    Args:
        network: the network.
        images: two or more normalised images.
        others: images of other sizes, to test the program with; none for a fixed size.
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
        except Exception as error:  # of a library's code or a guard, of any type
            reason = ' '.join(str(error).split())[:200]
    return Program(torch.export.export(network, (images,), dynamic_shapes=[batch]), open_size=False, reason=reason)


@torch.no_grad()
def encode(kind: str, program: Program, calibration: Iterable[Tensor] = ()) -> tuple[dict[str, bytes], Forward]:
    """Encode a model in a format, and load it again.

    Args:
        kind: a key of :data:`SUFFIXES`.
        program: as of :func:`export_program`.
        calibration: inputs ``(1, 3, H, W)`` for ``'int8'``, whose smallest and largest activations define the range.

    Returns:
        The contents of the files of the format, by suffix, and a function that runs the loaded model on images.

    Raises:
        UserError: a package is missing.
    """
    try:
        if kind == 'openvino':
            return _encode_openvino(program.onnx)
        if kind in ('onnx', 'int8'):
            content = program.onnx if kind == 'onnx' else _quantise(program.onnx, calibration)
            return {SUFFIXES[kind]: content}, run_onnx(content)
    except ImportError as error:
        packages = 'openvino' if kind == 'openvino' else 'onnx onnxscript onnxruntime'
        raise UserError(f'{error}: pip install {packages}') from error
    file = io.BytesIO()
    if kind == 'program':
        torch.export.save(program.program, file)
        file.seek(0)
        function = torch.export.load(file).module()
    else:
        from torch._inductor import aoti_compile_and_package, aoti_load_package  # the documented path

        aoti_compile_and_package(program.program, package_path=file)
        file.seek(0)
        function = aoti_load_package(file)
    return {SUFFIXES[kind]: file.getvalue()}, torch.no_grad()(lambda images: as_arrays(function(images)))


def run_onnx(content: bytes) -> Forward:
    """Return a function that runs an ONNX model with ONNX Runtime and PyTorch's number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session: Any = onnxruntime.InferenceSession(content, options, providers=['CPUExecutionProvider'])
    (given,) = session.get_inputs()
    return lambda x: session.run(None, {given.name: x.numpy()})


def _quantise(content: bytes, inputs: Iterable[Tensor]) -> bytes:
    """Quantise the layers with weights of an ONNX model to 8 bits, with ONNX Runtime's static quantisation.

    Products of activations, as in attention, softmax and normalisations are not quantised.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        batches = iter(inputs)

        def get_next(self) -> Any:
            return next((dict(images=batch.numpy()) for batch in self.batches), None)

    with tempfile.TemporaryDirectory() as folder:
        plain, prepared, quantised = (Path(folder, f'{name}.onnx') for name in ('plain', 'prepared', 'quantised'))
        write_atomically(plain, content)
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)  # folds batch normalisation
        quantize_static(
            prepared,
            quantised,
            Reader(),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            op_types_to_quantize=['Conv', 'Gemm', 'MatMul'],
            extra_options=dict(MatMulConstBOnly=True),
        )
        return quantised.read_bytes()


def _encode_openvino(content: bytes) -> tuple[dict[str, bytes], Forward]:
    """Return OpenVINO's two files of an ONNX model, and a function that runs it in float32.

    By default OpenVINO computes in bfloat16 on processors that support it.
    """
    import openvino

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'model.xml')
        openvino.save_model(openvino.convert_model(io.BytesIO(content)), path, compress_to_fp16=False)
        files = {suffix: path.with_suffix(suffix).read_bytes() for suffix in ('.xml', '.bin')}
        hints = dict(INFERENCE_PRECISION_HINT='f32', INFERENCE_NUM_THREADS=torch.get_num_threads())
        compiled = openvino.Core().compile_model(path, 'CPU', hints)
    return files, lambda x: [*compiled(x.numpy()).values()]


def as_arrays(outputs: Tensor | Sequence[Tensor]) -> list[np.ndarray]:
    """Return the outputs of a network as arrays."""
    return [output.numpy() for output in ([outputs] if isinstance(outputs, Tensor) else outputs)]


def largest_difference(run: Forward, network: Network, images: Tensor) -> float:
    """Return the largest difference of an exported model's outputs, relative to the largest output of the model."""
    with torch.no_grad():
        expected = as_arrays(network(images))
    found = run(images)
    if [one.shape for one in found] != [other.shape for other in expected]:
        return float('inf')
    differences = [np.abs(one - other).max() / np.abs(other).max() for one, other in zip(found, expected)]
    return float(np.max(differences)) if np.isfinite(differences).all() else float('inf')  # NaN, too


@contextlib.contextmanager
def answered_by(model: BaseModel, run: Forward) -> Iterator[None]:
    """Make a model predict with the outputs of an exported model inside the block."""
    head = getattr(model, 'decode_head', None) or model.head

    def answer(images: Tensor, *args) -> Tensor | tuple[Tensor, ...]:
        outputs = tuple(map(torch.from_numpy, run(images)))
        return outputs[0] if len(outputs) == 1 else outputs

    vars(model)['extract_feat'] = lambda images, *args, **kwargs: images
    vars(head)['forward'] = answer
    try:
        yield
    finally:
        del vars(model)['extract_feat'], vars(head)['forward']
