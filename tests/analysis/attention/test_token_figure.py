"""Where tokens look: the scale of figures, and the class token of a multiscale vision transformer over time."""

import pytest
import torch
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample

from vt.analysis.attention.token_figure import draw_attention, glow, look, name_part, times_uniform
from vt.errors import UserError
from vt.explorer.views import draw_matrix


def build(class_tokens=1, **options):
    arch = dict(channels=8, depths=(1, 1), position=None)
    backbone = dict(type='vt.MViT', arch=arch, image_size=32, key_value_stride=4, class_tokens=class_tokens, **options)
    head = dict(type='LinearClsHead', num_classes=3, in_channels=16)
    kind, preprocessor = ('vt.Video', 'vt.Clip') if 'num_frames' in options else ('Image', 'ClsData')
    data_preprocessor = dict(type=f'{preprocessor}Preprocessor', mean=[127.5] * 3, std=[127.5] * 3)
    parts = dict(backbone=backbone, head=head, data_preprocessor=data_preprocessor)
    return MODELS.build(dict(type=f'{kind}Classifier', **parts)).eval()


def make_sample(*sides):
    torch.manual_seed(0)
    return dict(inputs=torch.randint(256, (3, *sides), dtype=torch.uint8), data_samples=DataSample().set_gt_label(0))


def test_a_map_is_what_the_class_token_takes_of_each_place_and_time():
    model, sample = build(num_frames=4), make_sample(4, 32, 32)
    name = name_part(model, -1)
    assert name == 'backbone.stages.1.blocks.0.attention.part'
    part, calls = model.get_submodule(name), []
    hook = part.register_forward_hook(lambda _, inputs, output: calls.append(inputs))
    frames, seen = look(model, name, sample, is_bgr=False)
    hook.remove()
    torch.testing.assert_close(frames, sample['inputs'].transpose(0, 1).float() / 255)
    (x, size), *_ = calls
    assert size == (2, 8, 8)
    attention = part.attention(x, size)[0].mean(dim=0)  # 1 + queries, 1 + keys
    assert seen[0].shape == part.key_size(size) == (2, 4, 4)
    torch.testing.assert_close(seen.flatten(), attention[0, 1:])


def test_without_a_class_token_it_is_the_mean_of_all_that_look_and_an_image_is_one_frame():
    model = build(class_tokens=0)
    frames, seen = look(model, name_part(model, 0), make_sample(32, 32), is_bgr=True)
    torch.testing.assert_close(seen.sum(), torch.tensor(1.0))
    assert (frames.shape, seen.shape) == ((1, 3, 32, 32), (1, 1, 2, 2))
    with pytest.raises(UserError, match='--module 2 does not exist: the model has 2 pooling attentions'):
        name_part(model, 2)


def test_two_rows_a_video_and_a_column_a_frame():
    figure = draw_attention([torch.rand(4, 3, 8, 8)] * 2, [torch.rand(1, 2, 2, 2)] * 2, ['one', 'two'], 'Frames')
    assert len(figure.axes) == 4 * 4
    assert [cell.get_ylabel() for cell in figure.axes[::4]] == ['one', '', 'two', '']


@pytest.mark.parametrize('scale', [1e-3, 1.0, 50.0])
def test_what_is_nearly_uniform_is_not_bright_and_its_range_is_told(scale):
    """Whatever the number of pixels; a peak is bright, in a video that of all frames."""
    uniform = scale * (1 + 0.1 * torch.linspace(-1, 1, 64)).view(1, 8, 8)
    peak = torch.zeros(1, 8, 8).index_put((torch.tensor(0), torch.tensor(3), torch.tensor(4)), torch.tensor(scale))
    black = torch.zeros(3, 8, 8)
    half, bright, dark = (glow(black, times_uniform(each)).max() for each in (uniform, peak, 0 * peak))
    assert (int(dark), int(bright)) == (0, 216)  # 0.85 of the brightest colour
    assert 60 < half < 130
    square = torch.full((16, 16), scale)
    assert draw_matrix(square).max() < 190 < 250 < draw_matrix(square + 50 * square * torch.eye(16)).max()
    figure = draw_attention([black], [torch.cat([uniform, peak])], ['one'], 'Maps')
    assert [cell.get_xlabel() for cell in figure.axes] == ['', '0.90 to 1.10', '0.00 to 64.00']
    figure = draw_attention([torch.zeros(4, 3, 8, 8)], [torch.stack([uniform, 0 * uniform], dim=1)], ['one'], 'Maps')
    assert [cell.get_xlabel() for cell in figure.axes] == [''] * 4 + ['0.00 to 2.20'] + [''] * 3
