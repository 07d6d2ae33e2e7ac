"""What a split shares with the training is said before a run, whatever holds the samples."""

import json
import struct

import numpy as np
import pytest
from mmengine.config import Config

from vt.commands.check_dataset import read_data
from vt.data_checks.data import check_data
from vt.data_checks.samples import digest_of
from vt.engine.config.data import Data
from vt.errors import UserError


def write_mnist(folder):
    """Twenty training and ten test images in MNIST's files."""
    generator = np.random.default_rng(0)
    for name, number in (('train', 20), ('t10k', 10)):
        images = generator.integers(0, 256, (number, 28, 28), dtype=np.uint8)
        header = struct.pack('>IIII', 2051, number, 28, 28)
        (folder / f'{name}-images-idx3-ubyte').write_bytes(header + images.tobytes())
        labels = np.arange(number, dtype=np.uint8) % 10
        (folder / f'{name}-labels-idx1-ubyte').write_bytes(struct.pack('>II', 2049, number) + labels.tobytes())


def mnist(folder, **test):
    common = dict(type='FashionMNIST', data_root=str(folder), download=False, pipeline=[dict(type='PackInputs')])
    train, val = dict(common, split='train'), dict(common, split='test', **test)
    loaders = dict(train_dataloader=dict(dataset=train), val_dataloader=dict(dataset=val))
    return Config(dict(default_scope='mmpretrain', **loaders))


def test_a_test_split_in_memory_that_is_the_training(tmp_path, monkeypatch):
    write_mnist(tmp_path)
    warnings = check_data(Data(mnist(tmp_path)), ('train', 'val'))
    assert any('is the same image as an image in memory of train' in warning for warning in warnings)
    assert any('test_mode=True' in warning for warning in warnings)
    name, digests = 'vt.data_checks.samples.digest_of', []
    monkeypatch.setattr(name, lambda image: digests.append(digest_of(image)) or digests[-1])
    report = read_data(Data(mnist(tmp_path)), ('train', 'val'), 1)[0]
    assert report['counts'] == dict(duplicate=20)
    assert len(digests) == 40  # each once
    assert [row['train'] for row in report['classes']] == ['2'] * 10
    own = mnist(tmp_path, test_mode=True)
    assert not any('is the same image' in warning for warning in check_data(Data(own), ('train', 'val')))
    assert read_data(Data(own), ('train', 'val'), 1)[0]['counts'] == {}
    first, tested = (tmp_path / f'{name}-images-idx3-ubyte' for name in ('train', 't10k'))
    tested.write_bytes(tested.read_bytes()[:16] + first.read_bytes()[16 : 16 + 784] + tested.read_bytes()[16 + 784 :])
    (warning,) = [line for line in check_data(Data(own), ('train', 'val')) if 'same image' in line]
    assert warning.endswith('of train: the score of 1 of 10 has no meaning')


@pytest.mark.parametrize('label', [[7], [0, 7], 7])
def test_a_label_outside_the_classes_of_several_labels(tmp_path, label):
    items = [dict(img_path=f'{index}.png', gt_label=[0, 1]) for index in range(12)]
    items[5]['gt_label'] = label
    content = dict(metainfo=dict(classes=['a', 'b', 'c']), data_list=items)
    (tmp_path / 'list.json').write_text(json.dumps(content))
    dataset = dict(type='MultiLabelDataset', ann_file=str(tmp_path / 'list.json'), pipeline=[dict(type='PackInputs')])
    cfg = Config(dict(default_scope='mmpretrain', train_dataloader=dict(dataset=dataset)))
    with pytest.raises(UserError, match='has the label 7, outside the 3 classes of MultiLabelDataset'):
        check_data(Data(cfg), ('train',))
