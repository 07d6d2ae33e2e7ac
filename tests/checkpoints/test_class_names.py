"""What a checkpoint says of its data set is checked once, when it is read: in one line that names the place."""

import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

from vt.apis import get_model
from vt.checkpoints.reading import load_checkpoint

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
COLOURS = [[0, 0, 0], [1, 2, 255]]
CLEARS = 'cat\x1b[2J'


def written(path, **meta):
    torch.save(dict(state_dict=dict(weight=torch.zeros(2)), meta=meta), path)
    return path


@pytest.mark.parametrize(
    'meta',
    [
        {},
        dict(dataset_meta=None),
        dict(dataset_meta=dict(classes=None, palette=None)),
        dict(dataset_meta=dict(CLASSES=['a', 'b'], PALETTE=tuple(map(tuple, COLOURS)), seg_map_suffix='.png')),
        dict(dataset_meta=dict(classes=['ä', '猫 (cat)'], palette=[], reduce_zero_label=False, label_map={0: 1})),
    ],
)
def test_what_data_sets_say_is_kept(meta, tmp_path):
    assert load_checkpoint(written(tmp_path / 'a.pth', **meta)).get('meta') == meta


@pytest.mark.parametrize(
    ('dataset_meta', 'message'),
    [
        (['a', 'b'], r"{} is damaged: AttributeError: 'list' object"),
        (dict(classes='cat'), "dataset_meta.classes of {} is 'cat', not a list of names"),
        (dict(classes={'a', 'b'}), 'dataset_meta.classes of {} is a set, which has no order'),
        (dict(classes=['a', 5]), 'name 1 of dataset_meta.classes of {} must be 1 to 500 .*, not 5$'),
        (dict(CLASSES=[CLEARS]), r'name 0 of dataset_meta.CLASSES of {} .* control characters, not .cat\\x1b\[2J.$'),
        (dict(classes=['x' * 10**6]), 'name 0 of dataset_meta.classes of {} must be 1 to 500 characters'),
        (dict(classes=torch.zeros(5)), 'dataset_meta.classes of {} is tensor'),
        (
            dict(classes=['a'], palette=COLOURS),
            'dataset_meta.palette of {} is .*, three numbers up to 255 for each of',
        ),
        (dict(palette=[[0, 0, 256]]), r'dataset_meta.palette of {} is \[\[0, 0, 256\]\], not a list of colours'),
        (dict(PALETTE=['red']), r"dataset_meta.PALETTE of {} is \['red'\], not a list of colours"),
    ],
)
def test_what_can_not_be_used_is_named(dataset_meta, message, tmp_path):
    path = written(tmp_path / 'a.pth', dataset_meta=dataset_meta)
    with pytest.raises(ValueError, match=message.format('.*a.pth')) as raised:
        load_checkpoint(path)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300 + len(str(path))


def test_a_model_needs_as_many_names_as_it_has_classes(tmp_path):
    names, path = [f'number {index}' for index in range(10)], tmp_path / 'a.pth'
    cfg = Config.fromfile(CONFIG)
    sizes = [option.split('=') for option in SMALL_CLASSIFIER if option.startswith('model.')]
    cfg.merge_from_dict({name: int(size) for name, size in sizes})
    state = get_model(cfg).state_dict()
    for classes in (names, names[:3], [*names, 'more']):
        torch.save(dict(state_dict=state, meta=dict(dataset_meta=dict(classes=classes))), path)
        if len(classes) == 10:
            assert get_model(cfg, path).dataset_meta['classes'] == names
            assert get_model(cfg, path, head=dict(num_classes=3)).dataset_meta == {}  # a new head has no names
            continue
        with pytest.raises(ValueError, match=rf'a\.pth holds {len(classes)} names of classes, the model has 10'):
            get_model(cfg, path)


def test_tools_end_in_one_line(tmp_path):
    written(tmp_path / 'a.pth', dataset_meta=dict(classes=[CLEARS]))
    message = 'name 0 of dataset_meta.classes of a.pth must be 1 to 500 characters of UTF-8 without control'
    assert_one_line(run_forked('publish.py', 'a.pth', 'b.safetensors', cwd=tmp_path), message)
    assert_one_line(run_forked('test.py', CONFIG, 'a.pth', cwd=tmp_path), message)
    assert not (tmp_path / 'b.safetensors').exists()
