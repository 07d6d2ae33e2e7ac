"""Models for other runtimes: PyTorch programs, ONNX, 8 bits, OpenVINO, traces, compiled libraries.

What is exported takes images as the network does, normalised, and gives what the head gives: logits of classes, ``(N,
classes)``, of a segmentor at its head's resolution, ``(N, classes, H, W)``. The batch is open; so is the size, where
the model's code and its libraries' allow it.
"""

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from mmengine.model import BaseModel
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from vt.checkpoints.files import write_atomically
from vt.errors import UserError

Run = Callable[[Tensor], list[np.ndarray]]
SUFFIXES = dict(program='.pt2', onnx='.onnx', int8='.int8.onnx', openvino='.xml', torchscript='.ts', aot='.aot.pt2')


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

    @cached_property
    def onnx(self) -> bytes:
        """What an ONNX file of it holds, or a UserError where a package that it needs is not there."""
        with _needing('onnx, onnxscript and onnxruntime', 'export'):
            import onnxruntime  # noqa: F401
            import onnxscript  # noqa: F401 - the exporter needs it
        logging.getLogger('onnxscript').setLevel(logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # about names of open sizes
            model = torch.onnx.export(self.program, (), dynamo=True, verbose=False).model_proto
        return model.SerializeToString()


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
def encode(
    kind: str, network: Network, program: Program, images: Tensor, calibration: Iterable[Tensor] = ()
) -> tuple[dict[str, bytes], Run]:
    """A model in a format, and read again from it.

    Args:
        kind: a key of :data:`SUFFIXES`.
        network, program, images: as of :func:`export_program`.
        calibration: inputs of ``'int8'``, ``(1, 3, H, W)``, whose smallest and largest activations are the ends of
            eight bits.

    Returns:
        What files of the format hold, by their suffixes, and a function that runs it: images to the outputs.

    Raises:
        UserError: a package that it needs is not there.
    """
    if kind in ('onnx', 'int8'):
        content = program.onnx if kind == 'onnx' else _quantise(program.onnx, calibration)
        return {SUFFIXES[kind]: content}, run_onnx(content)
    if kind == 'openvino':
        return _encode_openvino(program.onnx)
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

    return {SUFFIXES[kind]: file.getvalue()}, run


@contextlib.contextmanager
def _needing(packages: str, extra: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UserError(f"it needs {packages}: pip install 'visual-transformers[{extra}]'") from error


def run_onnx(content: bytes) -> Run:
    """A function that runs an ONNX model by ONNX Runtime, with PyTorch's number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(content, options, providers=['CPUExecutionProvider'])
    (given,) = session.get_inputs()
    return lambda x: session.run(None, {given.name: x.numpy()})


def _quantise(content: bytes, inputs: Iterable[Tensor]) -> bytes:
    """An ONNX model whose layers with weights compute in 8 bits: ONNX Runtime's static quantisation.

    Products of activations alone, as in attention, softmax and normalisations stay as they are.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        batches = iter(inputs)

        def get_next(self) -> dict[str, np.ndarray] | None:
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


def _encode_openvino(content: bytes) -> tuple[dict[str, bytes], Run]:
    """OpenVINO's two files of an ONNX model, run in float32, which it leaves on processors with bfloat16."""
    with _needing('openvino', 'openvino'):
        import openvino
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'model.xml')
        openvino.save_model(openvino.convert_model(io.BytesIO(content)), path, compress_to_fp16=False)
        files = {suffix: path.with_suffix(suffix).read_bytes() for suffix in ('.xml', '.bin')}
        hints = dict(INFERENCE_PRECISION_HINT='f32', INFERENCE_NUM_THREADS=torch.get_num_threads())
        compiled = openvino.Core().compile_model(path, 'CPU', hints)
    return files, lambda x: [*compiled(x.numpy()).values()]


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


@contextlib.contextmanager
def answered_by(model: BaseModel, run: Run) -> Iterator[None]:
    """Within it a model predicts with the outputs of an exported one in the place of its network's."""
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
