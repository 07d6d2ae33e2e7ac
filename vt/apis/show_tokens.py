"""A picture of a trained model's visual tokens, as ``tools/show_tokens.py`` asks."""

from pathlib import Path

import torch
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from mmengine.structures import BaseDataElement
from torch.utils.data import Dataset

from vt.analysis.token_figure import draw_attention
from vt.checkpoints.loading import load_weights
from vt.engine.config_files import read_config, require_file
from vt.engine.launch import build_model
from vt.models import AttentionTokenizer, record_attention


def show_tokens(config: str, checkpoint: str, picture: str, num_images: int, module: int) -> None:
    """Draw where the tokens of one tokenizer look, on a few test images.

    Args:
        config, checkpoint: paths of a trained model with tokenizers.
        picture: file to write.
        num_images: test images, each of another class as far as there are classes.
        module: index of the tokenizer, in the order of the network: of VT-ResNet's modules, of VT-FPN's levels.

    Raises:
        ValueError: the checkpoint is not the model's; the model has no tokenizer, or no module of this index.
    """
    cfg = read_config(config)
    require_file(checkpoint, 'checkpoint')
    model = build_model(cfg)
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    load_weights(model, checkpoint)
    model.eval()

    tokenizers = [name for name, part in model.named_modules() if isinstance(part, AttentionTokenizer)]
    if not -len(tokenizers) <= module < len(tokenizers):
        raise ValueError(f'--module {module}: the model has {len(tokenizers)} tokenizers that attend')
    is_bgr = 'decode_head' in cfg.model or cfg.data_preprocessor.get('to_rgb')  # how images were read
    images, attention, titles = [], [], []
    for index in _spread_over_classes(dataset, num_images):  # images may differ in size
        batch = pseudo_collate([dataset[index]])
        with torch.no_grad(), record_attention(model) as records:
            (sample,) = model.test_step(batch)
        image = batch['inputs'][0].float() / 255  # 3, height, width
        images.append(image.flip(0) if is_bgr else image)
        attention.append(records[tokenizers[module]].attention[0])  # heads, L, H, W
        titles.append(_describe(sample, dataset))
    draw_attention(images, attention, titles).savefig(picture, dpi=100)
    print(f'written to {picture}')


def _describe(sample: BaseDataElement, dataset: Dataset) -> str:
    """What an image shows and was seen as; of a segmented one its name."""
    if 'gt_label' not in sample:
        return Path(sample.img_path).stem
    names = dataset.metainfo['classes']
    return f'{names[int(sample.gt_label)]}, seen as {names[int(sample.pred_label)]}'


def _spread_over_classes(dataset: Dataset, number: int) -> list[int]:
    """Indices of the first image of each class in turn, then of the second ones, and so on."""
    if not hasattr(dataset, 'get_gt_labels'):  # segmentation
        return list(range(min(number, len(dataset))))
    labels = dataset.get_gt_labels().tolist()
    seen: dict[int, int] = {}
    order = []
    for index, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        order.append((seen[label], label, index))
    return [index for _, _, index in sorted(order)[:number]]
