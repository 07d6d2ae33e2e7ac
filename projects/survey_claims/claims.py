"""Claims of the survey that structure or the embedded data can test, ``claims.yml``: what is measured, what came out.

Letters: N images, P places of a grid, C channels.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
import yaml
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmpretrain.registry import MODELS as CLASSIFIERS
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from docs.reports.markdown import ROOT, Rows, config_path
from docs.reports.scores import by_label, read_table, tell_verdict
from vt.analysis.scores import Scores, compare
from vt.apis import get_model
from vt.engine.config.steps import read_config
from vt.engine.counting import count_complexity
from vt.engine.run.launch import draw_weights
from vt.files import read_json
from vt.inference.test_set import build_test_set

FOLDER = Path(__file__).parent
RECORDS, CONFIGS = FOLDER / 'records', FOLDER / 'configs'
MEASURES = FOLDER / 'measured.json'  # as report.py claims writes them
CLAIMS = FOLDER / 'claims.yml'
AGAIN = 'python -m projects.survey_claims.report train'
IN1K = '{}_16xb64-300e_in1k'
SIZES = (224, 448, 896)
COSTS = ('deit-small', 'pvt-small', 'pvtv2-b2', 'pvtv2-b2-li', 'mvitv2-tiny', 'swin-tiny')
TOKENS = ('deit-mini_two-tokens_digits', 'deit-mini_hard_digits')
LAST = 'epoch_15.pth'
RIDGE, TINY = 1e-4, 1e-12  # of the variance of a channel; of what divides it
NOT_TRAINED = f'Not trained yet: `{AGAIN} survey-claims`', '-'
ALIKE = 0.99  # a cosine
VERDICTS = {True: 'holds', False: 'does not hold here'}


def measure_costs() -> dict[str, dict[int, int]]:
    """Multiply-adds of models' backbones by the height and width of an image, ``pvtv2-b2`` without pooling, too."""
    backbones = {name: Config.fromfile(ROOT / config_path(IN1K.format(name))).model.backbone for name in COSTS}
    costs = {name: {size: _count(backbone, size) for size in SIZES} for name, backbone in backbones.items()}
    unpooled = backbones['pvtv2-b2']
    for stage in unpooled.stages:
        stage.pop('attention', None)
    return costs | {'pvtv2-b2, not pooled': {size: _count(unpooled, size) for size in SIZES}}


def _count(backbone: dict, size: int) -> int:
    with torch.device('meta'):
        model = CLASSIFIERS.build(backbone | dict(image_size=size))
        model.eval()
        return count_complexity(model, torch.zeros(1, 3, size, size)).flops


@torch.no_grad()
def measure_places(seeds: Sequence[int] = (0, 1, 2)) -> dict[str, list[float]]:
    """How much PVTv2-B2's tokens tell of their place, before any training, by the padding of its convolutions.

    An image is of one colour, so that its border alone differs from the rest. A linear map is fitted from the tokens
    behind the third stage to their row and column; of other images it explains this share of the variance (R^2).
    """
    backbone = Config.fromfile(ROOT / config_path(IN1K.format('pvtv2-b2'))).model.backbone
    shares: dict[str, list[float]] = dict(zeros=[], circular=[])
    for seed in seeds:
        torch.manual_seed(seed)
        model = CLASSIFIERS.build(backbone | dict(image_size=128, out_indices=(2,), out_type='map'))
        draw_weights(model)
        model.eval()
        images = torch.randn(60, 3, 1, 1).expand(-1, -1, 128, 128)
        for padding, found in shares.items():
            for part in model.modules():
                if isinstance(part, nn.Conv2d):
                    part.padding_mode = padding
            found.append(explain_places(torch.cat([model(image)[0] for image in images.split(4)])))
    return shares


def explain_places(maps: Tensor) -> float:
    """The share of rows' and columns' variance that a linear map of tokens explains, fitted on two thirds of images.

    Args:
        maps: ``(N, C, H, W)``.

    Returns:
        R^2 of the other images, 1 at most, less than 0 where the map is worse than the mean.
    """
    tokens = maps.double().flatten(2).transpose(1, 2)  # N, P, C
    sides = [torch.arange(side, dtype=torch.float64) - (side - 1) / 2 for side in maps.shape[2:]]
    places = torch.stack(torch.meshgrid(*sides, indexing='ij'), dim=-1).flatten(0, 1)  # P, 2
    places = places.expand(len(maps), -1, -1)
    split = 2 * len(maps) // 3
    known = tokens[:split].flatten(0, 1)
    tokens, known = ((each - known.mean(dim=0)) / known.std(dim=0).clamp(min=TINY) for each in (tokens, known))
    ridge = RIDGE * len(known) * torch.eye(known.shape[1], dtype=known.dtype)
    fitted = torch.linalg.solve(known.T @ known + ridge, known.T @ places[:split].flatten(0, 1))
    error = (tokens[split:] @ fitted - places[split:]).square().mean()
    return (1 - error / places[split:].square().mean()).item()


@torch.no_grad()
def measure_tokens(runs: Path) -> dict[str, list[dict[str, float]]]:
    """Cosines of the two class tokens of trained models: as learned, and the mean of what leaves for the test images.

    Args:
        runs: folder of the work directories, ``LABEL_seed-SEED``; what is not there is left out.
    """
    found = {}
    for label in TOKENS:
        folders = sorted(runs.glob(f'{label}_seed-*'))
        found[label] = [_cosines(CONFIGS / f'{label}.py', folder / LAST) for folder in folders]
    return {label: cosines for label, cosines in found.items() if cosines}


def _cosines(config: Path, checkpoint: Path) -> dict[str, float]:
    cfg = read_config(str(config))
    model = get_model(cfg, str(checkpoint))
    first, second = model.backbone.stages[0].class_tokens[0]
    dataset = build_test_set(cfg)
    batch = model.data_preprocessor(pseudo_collate([dataset[index] for index in range(len(dataset))]), False)
    outputs = torch.cat([cosine_similarity(*model.backbone(images)[-1]) for images in batch['inputs'].split(60)])
    return dict(learned=cosine_similarity(first, second, dim=0).item(), outputs=outputs.mean().item())


def describe_claims(measures: Path = MEASURES, records: Path = RECORDS / 'survey-claims.json') -> Rows:
    """A row a claim: where it stands, how it is tested, what came out, and whether it holds here."""
    measured = read_json(measures, 'measure it: python -m projects.survey_claims.report claims')
    runs = read_table(records, AGAIN) if records.is_file() else []
    scores = by_label(runs)
    same, apart = (partial(_tell_cosines, measured['tokens'].get(label), scores.get(label)) for label in TOKENS)
    outcomes = dict(
        two_tokens=same(lambda cosine: cosine['outputs'] > ALIKE),
        distillation_token=apart(lambda cosine: max(cosine.values()) < ALIKE),
        distillation=_tell_scores(scores, 'deit-mini_hard_digits', 'deit-mini_soft_digits', 'deit-mini_digits'),
        layer_scale=_tell_scores(scores, 'vit-deep_layer-scale_digits', 'vit-deep_digits'),
        padding=_tell_places(measured['places']),
        pooling=_tell_costs(measured['costs']),
    )
    text = re.sub(r'\{([\w-]+)\}', r'configs/\1.py', CLAIMS.read_text())
    claims = yaml.safe_load(text)
    return [row | dict(zip(('result', 'verdict'), outcomes[name])) for name, row in claims.items()]


def _tell_cosines(
    cosines: list[dict[str, float]] | None, scores: Scores | None, holds: Callable[[dict], bool]
) -> tuple[str, str]:
    """What came out of each seed, and whether it is so in all of them."""
    if not cosines or not scores:
        return NOT_TRAINED
    learned, outputs = (', '.join(f'{cosine[key]:.3f}' for cosine in cosines) for key in ('learned', 'outputs'))
    words = f'parameters {learned}; outputs {outputs}; top-1 {scores.mean:.2f}'
    return words, VERDICTS[all(map(holds, cosines))]


def _tell_scores(scores: dict[str, Scores], *labels: str) -> tuple[str, str]:
    """Mean scores, the first of which is claimed to be the best, the last the worst, and their differences."""
    if any(label not in scores for label in labels):
        return NOT_TRAINED
    (first, *others), family = labels, [scores[label] for label in labels]
    told, verdicts = [f'`{first}` {scores[first].mean:.2f}'], []
    for before, label in zip(labels, others):
        change = compare(scores[label], scores[before], family)
        told.append(f'`{label}` {scores[label].mean:.2f} ({change.points:+.2f} ± {change.margin:.2f})')
        verdicts.append(tell_verdict(change))
    words = f'{"; ".join(told)}, seeds {", ".join(map(str, scores[first].seeds))}'
    if all(verdict == 'worse' for verdict in verdicts):
        return words, VERDICTS[True]
    return words, VERDICTS[False] if 'better' in verdicts else 'no clear difference at this scale'


def _tell_places(places: dict[str, list[float]]) -> tuple[str, str]:
    zeros, circular = (', '.join(f'{100 * share:.0f}' for share in places[key]) for key in ('zeros', 'circular'))
    words = f'{zeros} % with zero padding, {circular} % with circular padding'
    return words, VERDICTS[min(places['zeros']) > 0.5 > 0.1 > max(places['circular'])]


def _tell_costs(costs: dict[str, dict[str, int]]) -> tuple[str, str]:
    told, largest = [], {}
    for name, flops in costs.items():
        first, *_, largest[name] = flops.values()
        told.append(f'{name} {first / 1e9:.1f} to {largest[name] / 1e9:.0f} G, {largest[name] / first:.0f}x')
    return '; '.join(told), VERDICTS[largest['pvtv2-b2'] < largest['pvtv2-b2, not pooled'] / 2]
