"""Every file is written by one function, whole or not at all: no other place of VT opens one to write."""

import ast
import re

from tool_runner import ROOT

WRITES = {'write_text', 'write_bytes', 'savefig', 'imwrite', 'touch', 'copyfile', 'copy2', 'move', 'VideoWriter'}
WRITES |= {'aoti_compile_and_package', 'pipe_file', 'symlink_to', 'hardlink_to'}
WRITES |= {'save_model', 'quantize_static', 'quant_pre_process'}
SAVES = {'save', 'dump', 'save_file', 'to_parquet', 'save_to_disk', 'savez', 'savez_compressed', 'tofile'}
# Places that may: the function itself, files that nobody keeps, what is no file, and what is added to line by line.
ALLOWED = {
    'vt/engine/hooks/curves.py': {'figure.savefig'},  # to memory
    'vt/engine/config/compose.py': {'file.write_text'},  # a temporary folder
    'vt/files.py': {'Path(path).write_bytes', 'part.write_bytes', '(folder / MARK).open'},
    'vt/serialization/export.py': {
        *('torch.export.save', 'aoti_compile_and_package', 'torch.onnx.export'),
        *('quant_pre_process', 'quantize_static', 'openvino.save_model'),  # a temporary folder
    },
    'vt/analysis/figures.py': {'figure.savefig'},  # to memory
    'vt/inference/image_files.py': {'mask.save'},  # to memory
    'vt/commands/test.py': {'mmengine.dump'},  # to a text
    'vt/checkpoints/publish.py': {'save'},  # to bytes
    'vt/engine/run/work_directory.py': {'(folder / LOCK).open'},  # a lock
    'vt/engine/run/runner.py': {'torch.save'},  # in replacing
    'docs/site.py': {"(PAGES / 'tools.md').write_text", 'shutil.copyfile', 'page.write_text'},  # all of it each time
    'docs/figures/__main__.py': {'drawing.save'},  # by the function
    'docs/figures/data.py': {
        "Image.fromarray(load_sample_image(f'{name}.jpg')[:, 60 * part:][:, :400]).save"
    },  # images
    'docs/figures/drawing.py': {  # to memory
        *('drawn.save', 'drawn.quantize(256, dither=Image.Dither.NONE).save', 'drawn.savefig')
    },
    'docs/figures/runs.py': {'Image.fromarray(image[y - 60:y + 60, x - 60:x + 60]).save'},  # images of a run
    'docs/reports/references.py': {'torch.save'},  # a temporary folder
    'projects/speed/data_loading.py': {
        *('cv2.imwrite', 'cv2.VideoWriter', "(folder / f'train-{name}-ubyte').write_bytes")  # a temporary folder
    },
    'projects/speed/gpu_parts.py': {"(meta / 'train.txt').write_text"},  # a temporary folder
    'projects/speed/gpu_report.py': {'(folder / FILE).open', '(folder / name).write_text'},  # row by row
    'projects/speed/gpu_rows.py': {"(self.folder / 'log.txt').open"},  # row by row
    'projects/speed/inference.py': {'torch.save'},  # random weights in its working directory
    'projects/speed/kernels.py': {'cubin.write_bytes'},  # a temporary folder
    'projects/speed/timing.py': {'MARKS.write_text'},  # no file, but the kernel's
    'vt/commands/sweep.py': {'output.open'},  # the output of a run
    'vt/commands/predict.py': {'self.part.open'},  # results as they come, in a part that takes the name at the end
}


def writing_calls(text):
    """Names of the calls of some code that write a file."""
    return {ast.unparse(call.func) for call in ast.walk(ast.parse(text)) if isinstance(call, ast.Call) and writes(call)}


def writes(call):
    called = ast.unparse(call.func)
    name = called.rpartition('.')[2]
    values = [*call.args, *(key.value for key in call.keywords)]
    texts = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    opened = name in ('open', 'fdopen') and any(re.fullmatch('[wax][bt+]*', text) for text in texts)
    return opened or name in WRITES | SAVES or called.endswith('onnx.export')


def test_no_other_place_writes_a_file():
    paths = [path for folder in ('vt', 'tools', 'docs', 'projects') for path in (ROOT / folder).rglob('*.py')]
    found = {path.relative_to(ROOT): writing_calls(path.read_text()) for path in paths}
    assert {str(path): calls for path, calls in found.items() if calls and 'tests' not in path.parts} == ALLOWED
