"""A picture of a trained model's visual tokens, as ``tools/show_tokens.py`` asks."""

import torch
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, MODELS, init_default_scope
from mmengine.runner import load_checkpoint
from torch.utils.data import Dataset

from vt.analysis.token_figure import draw_attention
from vt.engine.command_line import read_config, require_file
from vt.models import record_attention


def show_tokens(config: str, checkpoint: str, picture: str, num_images: int, module: int) -> None:
    """Draw the tokenizer attention of one VT module on a few test images.

    Args:
        config, checkpoint: paths of a trained model with VT modules.
        picture: file to write.
        num_images: test images, each of another class as far as there are classes.
        module: index of the VT module.

    Raises:
        ValueError: the model has no tokenizer, or no module of this index.
    """
    cfg = read_config(config)
    require_file(checkpoint, 'checkpoint')
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    dataset = DATASETS.build(cfg.test_dataloader.dataset)
    cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)  # as mmengine's runner does
    model = MODELS.build(cfg.model)
    load_checkpoint(model, checkpoint, map_location='cpu')
    model.eval()

    batch = pseudo_collate([dataset[index] for index in _spread_over_classes(dataset, num_images)])
    with torch.no_grad(), record_attention(model) as records:
        samples = model.test_step(batch)
    tokenizers = [record for name, record in records.items() if name.endswith('.tokenizer')]
    if not -len(tokenizers) <= module < len(tokenizers):
        raise ValueError(f'--module {module}: the model has {len(tokenizers)} VT modules')
    images = torch.stack(batch['inputs']).float() / 255  # N, 3, height, width
    if cfg.data_preprocessor.get('to_rgb'):
        images = images.flip(1)  # they were read as BGR
    names = dataset.metainfo['classes']
    titles = [f'{names[int(sample.gt_label)]}, seen as {names[int(sample.pred_label)]}' for sample in samples]
    draw_attention(images, tokenizers[module].attention, titles).savefig(picture, dpi=100)
    print(f'written to {picture}')


def _spread_over_classes(dataset: Dataset, number: int) -> list[int]:
    """Indices of the first image of each class in turn, then of the second ones, and so on."""
    labels = dataset.get_gt_labels().tolist()
    seen: dict[int, int] = {}
    order = []
    for index, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        order.append((seen[label], label, index))
    return [index for _, _, index in sorted(order)[:number]]
