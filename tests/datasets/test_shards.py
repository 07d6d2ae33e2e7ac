"""Samples in tar shards: as those of files, checked, outdated or damaged by name, on this machine and on others."""

import argparse
import gc
import json
import os
import pickle
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from forked_tools import run_forked
from mmpretrain.datasets import CustomDataset
from run_comparison import assert_same_end
from shard_files import encode, make_image, of_sample, serve, write_shards, write_tar
from small_image_config import SMALL_IMAGES
from tool_runner import ROOT
from torch.utils.data import DataLoader

import vt
from vt.commands.shard import shard
from vt.data_checks.data import check_data
from vt.data_checks.data_report import read_data
from vt.datasets.rows import RowsBackend
from vt.datasets.shard_index import write_index
from vt.engine.config_files import read_config
from vt.engine.interruption.seeds import NumberedSampler, SeededDataset
from vt.errors import FileError, MissingFileError, UserError

LOAD = [dict(type='mmpretrain.LoadImageFromFile'), dict(type='mmpretrain.PackInputs')]
FLIP = [LOAD[0], dict(type='mmpretrain.RandomFlip', prob=0.5), LOAD[1]]
CONFIG = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py'
{SMALL_IMAGES}"""
SHARDS = """
of_shards = dict(_delete_=True, type='vt.ShardedDataset', data_root=None)
train_dataloader = dict(batch_size=4, num_workers=2, dataset=dict(**of_shards, split='train', pipeline=train_pipeline))
val_dataloader = dict(batch_size=4, num_workers=0, dataset=dict(**of_shards, split='val', pipeline=test_pipeline))
test_dataloader = val_dataloader
"""


def write_config(folder, text, **options):
    (folder / 'config.py').write_text(text)
    return read_config(str(folder / 'config.py'), options)


def make(folder, text, **options):
    """Call the tool as its command line does."""
    (folder / 'data.py').write_text(text)
    given = dict(config=str(folder / 'data.py'), out=folder / 'shards', splits=['train', 'val'], size=0.01, seed=None)
    given |= dict(in_order=False, index=None, index_file=None, cfg_options=dict(data_root=str(folder / 'files')))
    shard(argparse.Namespace(**given | options))


def write_files(folder):
    for split, seeds in dict(train=range(24), val=range(24, 30)).items():
        for seed in seeds:
            path = folder / f'files/{split}/{"cde"[seed % 3]}/{seed:03}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(seed))


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Images of three classes as files, and what the tool makes of them."""
    folder = tmp_path_factory.mktemp('made')
    write_files(folder)
    make(folder, CONFIG)
    return folder


@pytest.fixture
def shards(tmp_path):
    """Two shards of three samples, and their index."""
    write_shards(tmp_path)
    assert write_index(str(tmp_path)) == 6
    return tmp_path


def contents(dataset):
    return {sample['inputs'].numpy().tobytes(): int(sample['data_samples'].gt_label) for sample in dataset}


def test_shards_hold_the_samples_of_the_files_and_their_very_bytes(made):
    files = CustomDataset(data_prefix=f'{made}/files/train', pipeline=LOAD)
    dataset = vt.ShardedDataset(f'{made}/shards', 'train', pipeline=LOAD)
    assert contents(dataset) == contents(files)
    assert dataset.metainfo['classes'] == ('c', 'd', 'e')
    assert len([*(made / 'shards/train').glob('*.tar')]) > 2
    path = dataset.get_data_info(5)['img_path']
    shard, member = path.rpartition('/train/')[2].split('#5/')
    with tarfile.open(made / 'shards/train' / shard) as tar:
        (original,) = (made / 'files/train').rglob(f'{member[-7:]}')
        assert tar.extractfile(member).read() == original.read_bytes()


def test_the_same_seed_gives_the_same_shards_and_none_keeps_the_order(made, tmp_path):
    options = dict(cfg_options=dict(data_root=str(made / 'files')), splits=['train'])
    make(tmp_path, CONFIG, **options)
    for path in (made / 'shards/train').glob('*.tar'):
        assert (tmp_path / 'shards/train' / path.name).read_bytes() == path.read_bytes()
    make(tmp_path, CONFIG, **options, out=tmp_path / 'ordered', in_order=True)
    labels = vt.ShardedDataset(f'{tmp_path}/ordered/train').get_gt_labels()
    assert [*labels] == sorted(labels)
    assert [*vt.ShardedDataset(f'{tmp_path}/shards/train').get_gt_labels()] != sorted(labels)


def test_webdatasets_own_library_reads_them(made):
    webdataset = pytest.importorskip('webdataset')
    read = webdataset.WebDataset(sorted(map(str, (made / 'shards/train').glob('*.tar'))), shardshuffle=False)
    ours = vt.ShardedDataset(f'{made}/shards/train', pipeline=LOAD)
    for sample, own in zip(read.decode('rgb8'), ours, strict=True):
        assert np.array_equal(sample['png'][..., ::-1], own['inputs'].permute(1, 2, 0))
        assert sample['cls'] == int(own['data_samples'].gt_label)


def test_a_process_is_handed_where_the_index_is_and_parts_are_parts(shards):
    dataset = vt.ShardedDataset(str(shards), pipeline=LOAD)
    handed = pickle.dumps(dataset)
    assert len(handed) < 5000
    RowsBackend.columns.clear()  # as in a process that has opened nothing
    assert np.array_equal(pickle.loads(handed)[4]['inputs'].permute(1, 2, 0), make_image(4))
    assert [info['img_path'][-8:-4] for info in dataset.get_subset(2).data_list] == ['0000', '0001']
    assert np.array_equal(dataset.get_subset([5, 3])[1]['inputs'].permute(1, 2, 0), make_image(3))
    last = vt.ShardedDataset(str(shards), pipeline=LOAD, indices=-2)
    assert np.array_equal(last[0]['inputs'].permute(1, 2, 0), make_image(4))


def test_a_loader_that_goes_on_gives_the_rest_of_the_uninterrupted_one(made):
    def load(begin, workers):
        dataset = SeededDataset(dict(type='vt.ShardedDataset', data_root=f'{made}/shards/train', pipeline=FLIP))
        sampler = NumberedSampler(dict(type='mmengine.DefaultSampler', shuffle=True, seed=1), 7, dataset=dataset)
        sampler.begin = begin
        return [each['inputs'] for each in DataLoader(dataset, None, sampler=sampler, num_workers=workers)]

    whole, rest = load(0, 0), load(9, 2)
    assert len(rest) == 15
    assert all((one == other).all() for one, other in zip(whole[9:], rest))


@pytest.mark.slow
def test_a_run_that_is_resumed_ends_in_the_same_bits(made, tmp_path):
    def train(*arguments):
        (tmp_path / 'config.py').write_text(CONFIG + SHARDS)
        return run_forked('train.py', 'config.py', *arguments, cwd=tmp_path, options=[f'data_root={made}/shards'])

    whole = train('--work-dir', 'whole')
    assert whole.returncode == 0, whole.stderr
    (tmp_path / 'cut').mkdir()
    for path in (tmp_path / 'whole').glob('*epoch_1.pth'):  # as if it had been killed then
        shutil.copy(path, tmp_path / 'cut')
    (tmp_path / 'cut/last_checkpoint').write_text(str(tmp_path / 'cut/epoch_1.pth'))
    rest = train('--work-dir', 'cut', '--resume')
    assert rest.returncode == 0, rest.stderr
    assert_same_end(tmp_path / 'whole', tmp_path / 'cut')


def test_they_are_checked_as_files_are(made, tmp_path):
    shutil.copytree(made / 'shards', tmp_path / 'shards')
    cfg = write_config(tmp_path, CONFIG + SHARDS, data_root=str(tmp_path / 'shards'))
    assert not [line for line in check_data(cfg, ('train', 'val')) if 'few' not in line]
    flip(tmp_path / 'shards/train/000001.tar', 1000)
    report, _ = read_data(cfg, ('train', 'val'), threads=2)
    (problem,) = (each for each in report['problems'] if each['split'] == 'train')
    assert problem['kind'] == 'unreadable'
    assert '/train/000001.tar#' in problem['file']
    assert 'is damaged, or of another shard' in problem['message']
    cfg.val_dataloader.dataset.split = 'train'
    cfg.train_dataloader.dataset.data_root = cfg.val_dataloader.dataset.data_root = str(made / 'shards')
    assert any('24 of 24 files are also in train' in line for line in check_data(cfg, ('train', 'val')))


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 255
    stat = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_member_that_is_damaged_or_cut_off_is_named_with_its_shard(shards):
    dataset = SeededDataset(dict(type='vt.ShardedDataset', data_root=str(shards), pipeline=LOAD))
    flip(shards / '000001.tar', 700)
    with pytest.raises(UserError, match=r'000001.tar#3/0003.png cannot be loaded: .* is damaged, or of another shard'):
        dataset[3]
    assert dataset[4] is not None
    with open(shards / '000001.tar', 'r+b') as file:
        file.truncate(700)
    with pytest.raises(FileError, match=r'000001.tar#3/0003.png has 188 of 2,'):
        dataset.data_list.read(3)


def change(folder):
    samples = [(seed, of_sample(seed)) for seed in (5, 4, 3)]
    write_tar(folder / '000001.tar', [(f'{seed:04}.{kind}', text) for seed, sample in samples for kind, text in sample])


OUTDATED = {
    'new': (lambda folder: shutil.copy(folder / '000001.tar', folder / '000002.tar'), '000002.tar is new since the'),
    'gone': (lambda folder: (folder / '000000.tar').unlink(), '000000.tar is gone since the index'),
    'longer': (lambda folder: os.truncate(folder / '000000.tar', 30720), '000000.tar has changed since'),
    'other order': (change, '000001.tar has changed since the index was made: run python tools/shard.py --index'),
    'no index': (lambda folder: (folder / 'shards.index').unlink(), 'there is no .*shards.index, the index of the'),
    'cut index': (lambda folder: os.truncate(folder / 'shards.index', 300), 'shards.index is damaged .*: run python'),
    'no JSON': (lambda folder: os.truncate(folder / 'shards.index', 380), 'shards.index is damaged .*: run python'),
}


@pytest.mark.parametrize('kind', OUTDATED)
def test_an_index_that_is_outdated_says_what_to_do(kind, shards):
    act, message = OUTDATED[kind]
    act(shards)
    with pytest.raises(UserError, match=message):
        vt.ShardedDataset(str(shards))


def test_a_copy_of_the_shards_with_other_times_needs_no_new_index(shards, tmp_path):
    for path in shards.glob('*.tar'):
        os.utime(path, (1, 1))
    assert len(vt.ShardedDataset(str(shards))) == 6


BAD = {
    'two images': ([('a.png', encode(0)), ('a.jpg', encode(0))], 'the sample a has png, jpg, 2 images or videos'),
    'no image': ([('a.png', encode(0)), ('b.cls', b'1')], 'the sample b has cls, 0 images or videos'),
    'a text as label': ([('a.png', encode(0)), ('a.cls', b'cat')], 'a has png, cls, but no whole number from 0 as'),
    'a label below 0': ([('a.png', encode(0)), ('a.json', b'{"label": -2}')], 'but no whole number from 0 as label'),
    'labels of some': ([('a.png', encode(0)), ('a.cls', b'1'), ('b.png', encode(1))], '000000.tar: b.png has no label'),
    'twice': ([('a.png', encode(0)), ('a.png', encode(1))], 'has a.png twice, or as a link'),
    'nothing': ([], '000000.tar has no samples'),
}


@pytest.mark.parametrize('kind', BAD)
def test_shards_that_can_not_be_indexed_are_one_line(kind, tmp_path):
    members, message = BAD[kind]
    write_tar(tmp_path / '000000.tar', members)
    with pytest.raises(UserError, match=message) as error:
        write_index(str(tmp_path))
    assert '\n' not in str(error.value)
    assert not (tmp_path / 'shards.index').exists()


@pytest.mark.parametrize('size', [300, 700, 3000, 9000])
def test_a_shard_that_is_cut_off_is_not_indexed(size, shards):
    os.truncate(shards / '000001.tar', size)
    with pytest.raises(UserError, match=r'000001.tar is cut off or damaged after (its start|000[345].png): '):
        write_index(str(shards))


def test_threads_read_while_files_leave_the_cache(tmp_path):
    folders = [tmp_path / str(number) for number in range(70)]  # more shards than files are kept open
    for folder in folders:
        write_shards(folder, range(3))
        write_index(str(folder))
    samples = [vt.ShardedDataset(str(folder)).data_list for folder in folders]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda number: samples[number * 37 % 70].read(number % 3), range(800)))


def test_packed_shards_and_no_shards_are_one_line(tmp_path):
    with pytest.raises(MissingFileError, match='has no shards'):
        write_index(str(tmp_path))
    with pytest.raises(MissingFileError, match=r'nowhere has no shards \(\*.tar\), is not there'):
        write_index(str(tmp_path / 'nowhere'))
    (tmp_path / 'a.tar.gz').touch()
    with pytest.raises(UserError, match=r'a.tar.gz is compressed: unpack it to .tar'):
        write_index(str(tmp_path))


def test_a_label_in_json_none_at_all_and_names_with_folders(tmp_path):
    members = [('x/a.PNG', encode(0)), ('x/a.json', b'{"label": 2, "text": "a"}'), ('__meta__', b''), ('README', b'')]
    write_tar(tmp_path / 'json/0.tar', members)
    write_tar(tmp_path / 'none/0.tar', [members[0], ('x/a.txt', b'a text'), ('x/a.json', b'{"text": 1}')])
    for kind in ('json', 'none'):
        write_index(f'{tmp_path}/{kind}')
    info = vt.ShardedDataset(str(tmp_path), 'json').get_data_info(0)
    assert info == dict(img_path=f'rows://{tmp_path}/json/0.tar#0/x/a.PNG', gt_label=2, sample_idx=0)
    assert 'gt_label' not in vt.ShardedDataset(str(tmp_path), 'none', pipeline=LOAD).get_data_info(0)


def test_shards_in_a_store_of_fsspec(shards):
    import fsspec

    store = fsspec.filesystem('memory')
    for path in shards.glob('*.tar'):
        store.pipe_file(f'/own/train/{path.name}', path.read_bytes())
    assert write_index('memory://own/train') == 6
    dataset = vt.ShardedDataset('memory://own', 'train', pipeline=LOAD)
    handed = pickle.loads(pickle.dumps(dataset))
    assert np.array_equal(handed[4]['inputs'].permute(1, 2, 0), make_image(4))
    store.pipe_file('/own/train/000001.tar', b'changed')
    with pytest.raises(UserError, match=r'memory://own/train/000001.tar has changed since the index was made'):
        vt.ShardedDataset('memory://own', 'train')
    with pytest.raises(UserError, match=r'nothing://a cannot be read .*\[shards\]'):
        write_index('nothing://a')


def test_shards_on_a_server_are_read_in_parts_a_batch_at_once(shards):
    pytest.importorskip('aiohttp')
    with serve(shards) as server:
        dataset = SeededDataset(dict(type='vt.ShardedDataset', data_root=server.address, pipeline=LOAD))
        server.parts = 0
        batch = dataset.__getitems__([4, 1])
        assert [*map(len, (batch, dataset.data_list.ahead))] == [2, 2]
        assert server.parts == 2
        for index, sample in zip((4, 1), batch):
            assert np.array_equal(sample['inputs'].permute(1, 2, 0), make_image(index))
        loader = DataLoader(dataset, 3, num_workers=1, collate_fn=list)  # a fork has its own connections
        assert sum(map(len, loader)) == 6
        assert write_index(server.address, out=str(shards / 'local.index')) == 6
        (shards / 'shards.index').unlink()
        own = vt.ShardedDataset(server.address, index=str(shards / 'local.index'), pipeline=LOAD)
        assert np.array_equal(own[5]['inputs'].permute(1, 2, 0), make_image(5))
    write_index(str(shards))
    with serve(shards, sends_parts=False) as server:
        dataset = vt.ShardedDataset(server.address, pipeline=LOAD)
        with pytest.raises(FileError, match=r'000000.tar#2/0002.png has 20,480 of 2,\d+ bytes: .* sends no parts'):
            dataset[2]


def test_what_fails_on_the_way_leaves_nothing(made, tmp_path):
    shutil.copytree(made / 'files', tmp_path / 'files')
    (tmp_path / 'shards/.killed.part/train').mkdir(parents=True)  # of a process that was killed
    (tmp_path / 'shards/.killed.part/train/000000.tar').write_bytes(b'cut')
    (tmp_path / 'shards/.killed.part/in_use.lock').write_bytes(b'')
    (tmp_path / 'files/train/c/000.png').write_bytes(b'')
    with pytest.raises(UserError, match=r'c/000.png is neither an image nor a video'):
        make(tmp_path, CONFIG)
    assert [*(tmp_path / 'shards').iterdir()] == []
    (tmp_path / 'files/train/c/000.png').write_bytes(encode(0))
    make(tmp_path, CONFIG)
    assert len(vt.ShardedDataset(f'{tmp_path}/shards/train')) == 24
    with pytest.raises(UserError, match=r'shards/train is there already'):
        make(tmp_path, CONFIG)


def test_images_in_memory_are_png_in_their_colours(tmp_path):
    text = f"_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_digits.py'"
    make(tmp_path, text, splits=['val'], cfg_options={'val_dataloader.dataset.indices': 5}, in_order=True)
    digits = vt.Digits('test', indices=5)
    dataset = vt.ShardedDataset(f'{tmp_path}/shards/val', pipeline=LOAD)
    assert dataset.metainfo['classes'] == tuple(map(str, digits.metainfo['classes']))
    for sample, digit in zip(dataset, digits, strict=True):
        assert np.array_equal(sample['inputs'].permute(1, 2, 0), digit['img'])
        assert int(sample['data_samples'].gt_label) == digit['gt_label']


def test_masks_several_labels_and_clips_in_memory_are_refused(tmp_path):
    from vt.commands.shard import encode as members_of

    image = make_image(0)
    for info in (dict(img=image, gt_label=[0, 1]), dict(img=image, gt_seg_map=image[..., 0])):
        with pytest.raises(UserError, match='has a mask, or several labels: samples of shards have one label, or none'):
            members_of(info, 0, True)
    for info in (dict(frames=[image], gt_label=0), dict(img=image.astype(np.float32), gt_label=0)):
        with pytest.raises(UserError, match='sample 3 is neither an image nor a video that a shard holds'):
            members_of(info | dict(sample_idx=3), 0, True)
    ((_, png), _) = members_of(dict(img=image, gt_label=np.int64(1)), 0, False)
    assert np.array_equal(cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[..., ::-1], image)


@pytest.mark.parametrize('decoder', ['opencv', 'pyav'])
def test_videos_are_read_as_from_files(decoder, tmp_path):
    path = tmp_path / 'video.mp4'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), 25, (64, 48))
    for seed in range(12):
        writer.write(cv2.resize(make_image(seed), (64, 48)))
    writer.release()
    write_tar(tmp_path / 'shards/0.tar', [('v.mp4', path.read_bytes()), ('v.cls', b'0')])
    write_index(f'{tmp_path}/shards')
    load = vt.LoadClips(clip_length=4, frame_stride=2, num_clips=2, decoder=decoder)
    dataset = vt.ShardedDataset(f'{tmp_path}/shards')
    open_files = len(os.listdir('/proc/self/fd'))
    ours, others = (load(dict(img_path=name))['frames'] for name in (dataset.get_data_info(0)['img_path'], str(path)))
    assert len(ours) == 8
    assert all(np.array_equal(own, other) for own, other in zip(ours, others, strict=True))
    gc.collect()
    assert len(os.listdir('/proc/self/fd')) <= open_files + 1  # the shard itself stays open


@pytest.mark.parametrize('name', ['swin/swin-tiny_32xb128-90e_in21k', 'mvit/mvit-base-16x4_k400-shards'])
def test_a_config_on_shards_says_what_is_missing(name, tmp_path):
    cfg = read_config(str(ROOT / f'configs/{name}.py'), dict(data_root=str(tmp_path)))
    for split in ('train', 'val', 'test'):
        folder = f'{tmp_path}/{split.replace("test", "val")}'
        with pytest.raises(MissingFileError, match=f'there is no {folder}/shards.index, the index of the shards: run'):
            check_data(cfg, (split,))


def test_the_page_has_the_numbers_that_were_measured():
    measured = json.loads((ROOT / 'docs/benchmarks/shards_cpu.json').read_text())
    page = (ROOT / 'docs/how-to/shards.md').read_text()
    for row in measured['results']:
        assert f'{row["images_per_cpu_second"]:,.0f} | {row["ratio"]:.3g} |' in page
    for text in ('{index_MB:.0f} MB', '{MB opened:.1f} MB', '{MB used:.0f} MB', '{seconds:.1f} s in this run'):
        assert text.format(**measured['start']) in page
