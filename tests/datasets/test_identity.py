"""Digests of data change with labels, with files and with what is in memory, and not otherwise."""

import os
import shutil

import cv2
import hugging_face_data
import numpy as np
from mmengine.dataset import ConcatDataset
from mmpretrain.datasets import CustomDataset
from torch.utils.data import TensorDataset

from vt.datasets.digits import Digits
from vt.datasets.hugging_face import HuggingFaceDataset
from vt.datasets.identity import digest_samples, digest_values
from vt.datasets.images_and_masks import ImagesAndMasks


def test_files_count_by_name_size_and_time_and_folders_as_classes(tmp_path):
    hugging_face_data.write_folder(tmp_path)
    file, *_ = sorted((tmp_path / 'train/cat').iterdir())

    def digest():
        dataset = CustomDataset(str(tmp_path), data_prefix='train', pipeline=[])
        assert digest_samples(ConcatDataset([dataset, dataset])) != digest_samples(dataset)
        return digest_samples(dataset)

    found = [digest()]
    assert digest() == found[0]
    shutil.copy(file, file.with_name('new.png'))
    found.append(digest())
    file.with_name('new.png').rename(tmp_path / 'train/dog/new.png')
    found.append(digest())
    content = file.read_bytes()
    file.write_bytes(content + b' ')
    found.append(digest())
    file.write_bytes(content)
    os.utime(file, (1, 1))
    found.append(digest())
    assert len({*found}) == len(found)


def test_masks_count(tmp_path):
    for kind in ('images', 'masks'):
        (tmp_path / kind).mkdir()
        cv2.imwrite(str(tmp_path / kind / '0.png'), np.zeros((4, 4), np.uint8))
    paths = dict(img_path='images', seg_map_path='masks')
    dataset = ImagesAndMasks(data_root=str(tmp_path), data_prefix=paths, pipeline=[], metainfo=dict(classes=('a', 'b')))
    before = digest_samples(dataset)
    os.utime(tmp_path / 'masks/0.png', (1, 1))
    assert digest_samples(dataset) != before


def test_what_is_in_memory_counts_by_its_content():
    dataset = Digits(indices=20, pipeline=[])
    before = digest_samples(dataset)
    assert digest_samples(Digits(indices=20, pipeline=[])) == before
    assert digest_samples(Digits(split='test', indices=20, pipeline=[])) != before
    image = np.arange(12.0)
    assert len({digest_values(image), digest_values(image.reshape(3, 4)), digest_values(image + 1)}) == 3


def test_rows_count_by_their_files_or_by_themselves(tmp_path):
    folder = tmp_path / 'data'

    def digest(seeds, name):
        hugging_face_data.make_rows(seeds).save_to_disk(folder / name)
        return digest_samples(HuggingFaceDataset(data_root=str(folder / name), pipeline=[]))

    first = digest(range(6), 'a')
    assert digest_samples(HuggingFaceDataset(data_root=str(folder / 'a'), pipeline=[])) == first
    (folder / 'a').rename(folder / 'old')
    assert digest(range(3, 9), 'a') != first  # other images of the same names and labels


def test_samples_that_are_not_listed_or_not_here_have_no_digest():
    assert digest_samples(TensorDataset()) is None

    class Remote(Digits):
        def get_data_info(self, index):
            return dict(img_path='s3://bucket/0.png', gt_label=0)

    assert digest_samples(Remote(indices=2, pipeline=[])) is None
