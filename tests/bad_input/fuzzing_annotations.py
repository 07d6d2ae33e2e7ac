"""Annotation files with something wrong in them, and the data set that reads them."""

from bad_input.images import MASK, RGB, encode
from bad_input.kept_run import FOLDER, SCENES
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.registry import DATASETS

from vt.data_checks.data import check_data
from vt.engine.interruption.seeds import SeededDataset

WRITTEN = 'list.txt'
GOOD = dict(labels=[b'a.png 0', b'b c.png 1'], names=[b'a', b'b c'])
ODD = [b'', b' ', b'\t', b'a.png', b'a.png -1', b'a.png 9', b'a.png x', b'a.png,0', b'../a.png 0', b'/ 0', b'. 0', b'0']
ODD += [b'a.png 0 0', b'\0', b'\xff\xfe', b'\xef\xbb\xbfa.png 0', b'a.png 1e9', b'a.png ' + b'9' * 30, b'x' * 5000]
ODD += [
    'é.png ٣'.encode(),
    b'a.png 0',
    b'a.png 0\x85',
    b'a.png\x1c0',
    b'a.png 0_0',
    b'#',
    b'..',
    b'*',
    b'a\x0b',
    b'\ra.png 0',
]


def annotations(kind):
    """Contents of files: lines good, odd and random, joined by some line end."""
    line = st.one_of(st.sampled_from(GOOD[kind]), st.sampled_from(ODD), st.binary(max_size=8))
    lines = st.lists(line, max_size=6)
    return st.one_of(
        st.tuples(lines, st.sampled_from([b'\n', b'\r\n', b'\r', b' '])).map(lambda drawn: drawn[1].join(drawn[0])),
        st.binary(max_size=40),
    )


def annotated(kind, folder):
    """The config of a data set of two images, listed in ``list.txt`` of a folder."""
    for name, image in (('images', RGB), ('masks', MASK)):
        (folder / name).mkdir()
        for stem in ('a', 'b c'):
            (folder / name / f'{stem}.png').write_bytes(encode(image))
    text = FOLDER if kind == 'labels' else SCENES
    text = text.replace("type='CustomDataset',", f"type='CustomDataset', ann_file='{WRITTEN}',")
    text = text.replace("type='BaseSegDataset',", f"type='BaseSegDataset', ann_file='{WRITTEN}',")
    (folder / 'config.py').write_text(text.replace("data_root='data'", f'data_root={str(folder)!r}'))
    return Config.fromfile(folder / 'config.py')


def read_annotated(config):
    """Check the data set as a run does, then load every sample."""
    check_data(config, ('train',))
    with DATASETS.switch_scope_and_registry(config.default_scope):
        dataset = SeededDataset(config.train_dataloader.dataset)
    for index in range(len(dataset)):
        dataset[index]
