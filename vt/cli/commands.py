"""The commands by task, each with its arguments. Nothing here imports PyTorch, which ``--help`` does not need."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vt.hints import as_typed

from .parser import CONFIG, CommandParser


@dataclass(frozen=True)
class Command:
    """A command of ``vt``.

    Attributes:
        task: what it is for, a heading of ``vt --help``.
        name: its name, such as ``check-dataset``.
        function: what it runs, ``'module:function'`` in :mod:`vt.commands`, or a function that returns this for its
            arguments.
        description: what it does, in a sentence.
        example: how it is typed.
        add_arguments: adds its arguments to a parser.
    """

    task: str
    name: str
    function: str | Callable[[argparse.Namespace], str]
    description: str
    example: str
    add_arguments: Callable[[CommandParser], None]


COMMANDS: dict[str, Command] = {}


def command(task: str, function: str | Callable[[argparse.Namespace], str], example: str) -> Callable:
    """Return a decorator that makes a command of the function that adds its arguments; its docstring describes it."""

    def enter(add_arguments: Callable[[CommandParser], None]) -> Callable[[CommandParser], None]:
        name = add_arguments.__name__.replace('_', '-')
        COMMANDS[name] = Command(task, name, function, add_arguments.__doc__, example, add_arguments)
        return add_arguments

    return enter


@command(
    'Train',
    lambda args: 'train:find_batch_size' if args.find_batch_size else 'train:train',
    'vt train vt-resnet18 data=photos epochs=30 weights=torchvision',
)
def train(parser: CommandParser) -> None:
    """Train a model on your data, or as a config says."""
    parser.add_words()
    resume = parser.add_argument_group('resume')
    resume.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='PATH',
        help='continue from a checkpoint, or the newest one in a folder (without a path, in the work directory)',
    )
    resume.add_argument(
        '--new-schedule',
        action='store_true',
        help='with --resume: use learning rate, decay and schedule of the config instead of those of the checkpoint',
    )
    training = parser.add_argument_group('training')
    training.add_argument('--no-validate', action='store_true', help='do not evaluate during training')
    training.add_argument(
        '--auto-scale-lr', action='store_true', help='scale the learning rate with the batch size, from base_batch_size'
    )
    training.add_argument(
        '--find-batch-size',
        action='store_true',
        help='find the largest batch size that fits into the memory of a GPU, and do not train',
    )
    training.add_argument('--skip-data-check', action='store_true', help='skip the checks of the data and the dry run')
    parser.add_run_options()


@command(
    'Train',
    'check_dataset:check_dataset',
    'vt check-dataset data=photos --out data-report',
)
def check_dataset(parser: CommandParser) -> None:
    """Read all data once, and list problems."""
    parser.add_words()
    parser.set_defaults(needs_no_model=True)
    settings = parser.add_argument_group('settings')
    settings.add_argument(
        '--splits',
        nargs='+',
        choices=['train', 'val', 'test'],
        default=['train', 'val', 'test'],
        help='splits to read (default: all)',
    )
    settings.add_argument('--workers', type=int, help='number of reading threads (default: one per available core)')
    settings.add_argument('--out', help='JSON file for the report, or folder for the report and a page of samples')
    settings.add_argument(
        '--show', help='image file, .png, for training samples as the network gets them, and the learning rate'
    )
    parser.add_common_options(checkpoint=False)


@command('Train', 'sweep:sweep', 'vt sweep vt-resnet18_digits model.backbone.num_tokens=8,16 --seeds 0:3')
def sweep(parser: CommandParser) -> None:
    """Train a config with every combination of settings and seeds, or continue such a sweep."""
    parser.add_argument('config', help=CONFIG)
    parser.add_argument(
        'settings', nargs='*', metavar='KEY=VALUE,VALUE', help='keys of the config, as in --cfg-options, and values'
    )
    runs = parser.add_argument_group('runs')
    runs.add_argument('--seeds', default='0', help='0:3 for 0, 1 and 2, or a list such as 0,4 (default: 0)')
    runs.add_argument('--work-dir', help='folder of all runs (default: work_dirs/sweeps/<config name>)')
    runs.add_argument('--jobs', type=int, help='runs at a time (default: the number of GPUs, or of cores)')
    parser.add_common_options(config=False, checkpoint=False)


@command(
    'Train',
    'print_config:print_config',
    'vt print-config vt-resnet18_digits image_size=64 epochs=5',
)
def print_config(parser: CommandParser) -> None:
    """Print the complete config of a run, as Python, and which step set what."""
    parser.add_words()
    parser.add_run_options()


@command('Train', 'listing:dist_train', 'vt dist-train vt-resnet18 2 data=photos epochs=30')
def dist_train(parser: CommandParser) -> None:
    """Train with several processes, on this machine or on several."""
    parser.add_argument('model', metavar='MODEL', help='as of vt train')
    parser.add_argument('processes', metavar='PROCESSES', type=int, help='number of processes, one a GPU')
    parser.add_argument('rest', nargs=argparse.REMAINDER, metavar='...', help='settings and options of vt train')
    parser.add_common_options(config=False, checkpoint=False)


@command('Train', 'listing:settings', 'vt settings')
def settings(parser: CommandParser) -> None:
    """List the short names of settings, and the keys of the config that they stand for."""
    parser.add_argument(
        '--completion',
        action='store_true',
        help='print what lets bash, or zsh with bashcompinit, complete commands, models and settings',
    )
    parser.set_defaults(commands=[*COMMANDS])
    parser.add_common_options(config=False, checkpoint=False)


@command('Use a model', 'predict:predict', 'vt predict swin-tiny weights=timm photos --out predictions.csv')
def predict(parser: CommandParser) -> None:
    """Predict on your own images or videos."""
    parser.add_words(checkpoint=True, others='INPUT')
    results = parser.add_argument_group('results')
    results.add_argument('--out', type=Path, help='file for the predictions, .json or .csv')
    results.add_argument('--out-dir', type=Path, help='folder for figures: images with their class or segments')
    results.add_argument('--masks', type=Path, help='folder for masks: PNG with a palette, or GeoTIFF for a GeoTIFF')
    results.add_argument('--top-k', type=int, default=5, help='number of classes to list (default: 5)')
    results.add_argument(
        '--threshold',
        help='for several labels per image: the score from which a label is predicted (default: 0.5), or a '
        f'report.json of {as_typed("vt test --report")}, for the best threshold of each class',
    )
    settings = parser.add_argument_group('settings')
    settings.add_argument('--batch-size', type=int, default=8, help='files per batch (default: 8)')
    settings.add_argument(
        '--workers', type=int, help='threads that read files ahead; 0 for none (default: one per four cores, at most 8)'
    )
    settings.add_argument('--amp', action='store_true', help='mixed precision: bfloat16, or float16 on older GPUs')
    parser.add_common_options()


@command(
    'Use a model',
    'export:export',
    'vt export work_dirs/vt-resnet18_photos onnx --benchmark',
)
def export(parser: CommandParser) -> None:
    """Export a model, to onnx, int8, openvino, program (torch.export) or aot, and compare the files with the model."""
    parser.add_words(checkpoint=True, others='FORMAT')
    files = parser.add_argument_group('files')
    files.add_argument(
        '--out-dir', type=Path, default=Path('exported'), help='folder for the exported files (default: exported)'
    )
    files.add_argument(
        '--fixed-size', action='store_true', help='only the batch size may vary, the image size is fixed'
    )
    files.add_argument(
        '--calibrate', nargs='+', type=Path, default=[], help='inputs to calibrate int8 (default: 128 training images)'
    )
    comparison = parser.add_argument_group('comparison')
    comparison.add_argument(
        '--inputs', nargs='+', type=Path, default=[], help='images or videos to compare on (default: test images)'
    )
    comparison.add_argument(
        '--tolerance',
        type=float,
        default=1e-4,
        help='largest allowed difference, relative to the largest output (default: 1e-4)',
    )
    comparison.add_argument(
        '--accuracy',
        nargs='?',
        type=int,
        const=0,
        metavar='NUMBER',
        help='score each format on the test set, or on this number of its images',
    )
    comparison.add_argument(
        '--max-accuracy-drop',
        type=float,
        default=1.0,
        help='largest drop of the score of int8 in --accuracy, in points (default: 1.0)',
    )
    comparison.add_argument(
        '--benchmark', action='store_true', help='measure the speed of each format and of the model'
    )
    comparison.add_argument('--out', type=Path, help='JSON file for the measurements')
    parser.add_common_options()


@command(
    'Use a model',
    'publish:publish_checkpoint',
    'vt publish work_dirs/vt-resnet18_photos vt-resnet18_photos.safetensors',
)
def publish(parser: CommandParser) -> None:
    """Publish a checkpoint's weights as safetensors, with its config in the header of the file."""
    parser.add_argument('checkpoint', nargs='?', type=Path, help='path of a checkpoint')
    parser.add_argument(
        'out', nargs='?', type=Path, help='file to write, .safetensors; a hash of its content is added to the name'
    )
    header = parser.add_argument_group('header of the file')
    header.add_argument('--config', help=f'{CONFIG} (default: the text in the checkpoint)')
    header.add_argument(
        '--show', type=Path, metavar='FILE', help='print the header of a published checkpoint, and exit'
    )
    header.add_argument(
        '--save-config', type=Path, metavar='FILE', help='with --show: write the config of the header, .py, instead'
    )
    formats = parser.add_argument_group('other formats')
    formats.add_argument('--format', choices=('timm',), help="write weights for timm's own model")
    formats.add_argument('--model', metavar='NAME', help='with --format: name of the model in timm')
    parser.add_common_options(config=False)


@command('Judge a model', 'test:test', 'vt test work_dirs/vt-resnet18_photos --report report')
def test(parser: CommandParser) -> None:
    """Test a checkpoint, and measure the cost of its model."""
    parser.add_words(checkpoint=True)
    results = parser.add_argument_group('results')
    results.add_argument('--out', help='file for the metrics, .json, or the predictions, .pkl; of a segmentor a folder')
    results.add_argument('--show-dir', help='folder for figures of the predictions')
    results.add_argument('--report', help='folder for report.html and report.json: scores of each class, worst images')
    results.add_argument('--compare', help='folder of the report of another checkpoint, to show the differences')
    results.add_argument(
        '--heat-maps',
        nargs='?',
        const='gradcam',
        metavar='METHOD',
        help='show in the report which pixels contribute to the predicted class (default method: gradcam)',
    )
    results.add_argument(
        '--benchmark',
        action='store_true',
        help='also measure FLOPs, parameters, latency, throughput and memory of a GPU; write <work dir>.benchmark.json',
    )
    parser.add_argument_group('testing').add_argument(
        '--tta', action='store_true', help='test-time augmentation of the config, or flips'
    )
    parser.add_run_options()


@command('Judge a model', lambda args: f'reports:report_{args.command}', 'vt report runs work_dirs/*')
def report(parser: CommandParser) -> None:
    """Print tables of finished runs."""
    commands = parser.add_subparsers(dest='command', required=True)

    def add(name: str, help: str, example: str) -> CommandParser:
        return commands.add_parser(name, help=help, description=f'{help.capitalize()}.', example=f'vt report {example}')

    runs = add('runs', 'compare finished runs in a table', 'runs work_dirs/*')
    runs.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    runs.add_argument('--out', type=Path, help='file for the curves of the runs, .png, .svg or .pdf')
    scores = add(
        'scores', 'tabulate scores of finished runs, one row per label', 'scores work_dirs/*_seed-* --out scores.json'
    )
    scores.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained models, LABEL_seed-SEED')
    scores.add_argument('--out', type=Path, help='JSON file for the records of the runs')
    sweep = add(
        'sweep',
        'compare the runs of a sweep, and their scores with their costs',
        'sweep work_dirs/sweeps/vt-resnet18_digits --out report',
    )
    sweep.add_argument('folder', type=Path, help=f'folder of {as_typed("vt sweep")}')
    sweep.add_argument('--out', type=Path, help='folder for the table (.md, .csv)')
    for command in (runs, scores, sweep):
        command.add_common_options(config=False, checkpoint=False)


def add_measurement(parser: CommandParser, models: str = 'configs or names of models; data are not read') -> None:
    """Add models, settings, and how long they are measured."""
    parser.add_argument('configs', nargs='+', metavar='CONFIG', help=models)
    how = parser.add_argument_group('settings; every combination of several values is measured')
    how.add_argument(
        '--kinds', nargs='+', choices=['inference', 'training'], default=['inference', 'training'], help='default: both'
    )
    how.add_argument('--batch-sizes', type=int, nargs='+', default=[8], help='images per step (default: 8)')
    how.add_argument(
        '--sizes',
        nargs='+',
        default=['224'],
        help='image sizes: 224, or height and width as 800x1216; of clips 16x224x224 (default: 224)',
    )
    how.add_argument(
        '--dtypes',
        nargs='+',
        choices=['float32', 'tf32', 'bfloat16', 'float16'],
        help='tf32: float32 with TensorFloat-32 products, as in runs on a GPU; float32: exact products; bfloat16 and '
        'float16: autocast, as with --amp, weights stay in float32 (default: tf32 on a GPU, float32 on a CPU)',
    )
    how.add_argument('--devices', nargs='+', help='such as cpu cuda (default: a GPU if there is one)')
    measurement = parser.add_argument_group('measurement')
    measurement.add_argument('--rounds', type=int, default=30, help='measured steps of each model (default: 30)')
    measurement.add_argument('--seconds', type=float, default=120, help='time limit per table, about (default: 120)')
    measurement.add_argument('--out', help='JSON file for the measurements')


@command(
    'Judge a model',
    'benchmarks:benchmark',
    'vt benchmark resnet18 vt-resnet18 --batch-sizes 1 8',
)
def benchmark(parser: CommandParser) -> None:
    """Compare the speed of models in one interleaved run, relative to the first model."""
    add_measurement(parser)
    parser.add_common_options(config=False, checkpoint=False)


@command('Judge a model', 'probe:probe', 'vt probe work_dirs/vt-resnet18_photos --layers')
def probe(parser: CommandParser) -> None:
    """Score a frozen model's features by a linear probe and by nearest neighbours."""
    parser.add_words(checkpoint=True)
    settings = parser.add_argument_group('settings')
    settings.add_argument(
        '--layers',
        nargs='*',
        metavar='NAME',
        help='layers to probe; without names every block (default: the input of the head)',
    )
    settings.add_argument('--neighbours', type=int, default=20, help='number of nearest neighbours (default: 20)')
    settings.add_argument('--c', type=float, default=1.0, help='inverse of the L2 penalty of the probe (default: 1)')
    settings.add_argument('--batch-size', type=int, default=32, help='images per batch (default: 32)')
    settings.add_argument(
        '--out', type=Path, help='folder for the scores, probe.json (default: work_dirs/<config name>/probe)'
    )
    parser.add_common_options()


@command(
    'Look into a model',
    'explore:explore',
    'vt explore work_dirs/vt-resnet18_photos --html tokens.html',
)
def explore(parser: CommandParser) -> None:
    """Show predictions, attention and relations of tokens on a local web page, or in a report."""
    parser.add_words(checkpoint=True)
    shown = parser.add_argument_group('models and images')
    shown.add_argument(
        '--compare', nargs='+', metavar='RUN', help='a second model, beside the first: a run, or CONFIG CHECKPOINT'
    )
    shown.add_argument(
        '--inputs',
        nargs='+',
        default=[],
        metavar='IMAGE',
        help='images, or folders of images, to show instead of test images',
    )
    shown.add_argument(
        '--images',
        type=int,
        default=6,
        help='number of test images to choose from, spread over the classes (default: 6)',
    )
    output = parser.add_argument_group('page or report')
    output.add_argument('--port', type=int, default=7860, help='port of the page, on 127.0.0.1 (default: 7860)')
    output.add_argument(
        '--html', type=Path, help='write a report of --inputs, or else of test images, to this file instead of a page'
    )
    parser.add_common_options()


@command(
    'Look into a model',
    'attention:show_tokens',
    'vt show-tokens work_dirs/vt-resnet18_photos --out tokens.png',
)
def show_tokens(parser: CommandParser) -> None:
    """Draw the attention of each visual token, or of the class token of an MViT."""
    parser.add_words(checkpoint=True, others='INPUT')
    parser.add_argument(
        '--out',
        type=Path,
        help='file to write, .png, .pdf or .svg (default: tokens.png in the work directory of the config, or here)',
    )
    parser.add_argument(
        '--images', type=int, default=6, help='number of test images, spread over the classes (default: 6)'
    )
    parser.add_argument(
        '--module',
        type=int,
        default=0,
        help='number of the VT module or level, or of the block of an MViT; -1 is the last (default: 0)',
    )
    parser.add_common_options()


@command(
    'Look into a model',
    'attention:show_heat_maps',
    'vt show-heat-maps swin-tiny weights=timm photo.jpg --out heat-maps.png',
)
def show_heat_maps(parser: CommandParser) -> None:
    """Draw which pixels contribute to a class, by Grad-CAM or related methods."""
    parser.add_words(checkpoint=True, others='INPUT')
    method = parser.add_argument_group('method')
    method.add_argument(
        '--method',
        nargs='+',
        default=['gradcam'],
        help='gradcam (default), gradcamplusplus, hirescam, layercam, xgradcam, eigencam, eigengradcam or '
        'gradcamelementwise; several are drawn side by side',
    )
    method.add_argument('--target', metavar='CLASS', help='name or number of a class (default: the predicted class)')
    method.add_argument('--layer', help='name of the layer (default: the last one whose positions affect the output)')
    figure = parser.add_argument_group('figure')
    figure.add_argument(
        '--out',
        type=Path,
        help='file to write, .png, .pdf or .svg (default: heat-maps.png in the work directory of the config, or here)',
    )
    figure.add_argument(
        '--images', type=int, default=6, help='number of test images, spread over the classes (default: 6)'
    )
    parser.add_common_options()


@command('Look into a model', 'listing:models', 'vt models "swin*"')
def models(parser: CommandParser) -> None:
    """List the models: name, task, parameters, GFLOPs, public weights."""
    parser.add_argument('pattern', nargs='?', metavar='PATTERN', help='start of the names of configs, with wildcards')
    parser.add_common_options(config=False, checkpoint=False)


@command('Look into a model', 'listing:env', 'vt env')
def env(parser: CommandParser) -> None:
    """Print versions, processor and GPUs, for a report of a fault."""
    parser.add_common_options(config=False, checkpoint=False)
