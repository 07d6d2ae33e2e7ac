"""No server is asked by whatever a data set's folder names: requests are counted by one on this machine."""

import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from forked_tools import run_forked
from hugging_face_data import CLASSES, encode, make_image, make_mask, make_rows, make_splits, write_folder
from tool_runner import ROOT

import vt
from vt.errors import UserError

LOAD = [dict(type='mmpretrain.LoadImageFromFile'), dict(type='mmpretrain.PackInputs')]
CONFIG = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_1xb32-90e_hugging-face.py'
model = dict(head=dict(num_classes=3))
"""


class Server:
    """A server of a data set that counts what it is asked for; every address leads to a file that is there."""

    def __init__(self):
        self.asked = []
        content = io.BytesIO()
        make_rows(range(4)).to_parquet(content)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(f'{self.command} {self.path}')
                self.send_response(200)
                self.send_header('Content-Length', str(content.getbuffer().nbytes))
                self.end_headers()
                if self.command == 'GET':
                    self.wfile.write(content.getvalue())

            do_HEAD = do_CONNECT = do_POST = do_GET

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.address = f'http://127.0.0.1:{self.http.server_port}'
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture(scope='module')
def server():
    server = Server()
    yield server
    server.http.shutdown()


@pytest.fixture(autouse=True)
def surroundings(server, tmp_path, monkeypatch):
    """A cache of its own; whatever host is asked for, it is the server: as its proxy, its hub and its S3."""
    monkeypatch.setattr(datasets.config, 'HF_DATASETS_CACHE', tmp_path / 'cache')
    monkeypatch.setenv('HF_DATASETS_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setenv('HF_HOME', str(tmp_path / 'hub'))
    for name in ('http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'HF_ENDPOINT', 'AWS_ENDPOINT_URL'):
        monkeypatch.setenv(name, server.address)
    for name in ('no_proxy', 'NO_PROXY'):
        monkeypatch.delenv(name, raising=False)
    server.asked.clear()
    yield
    assert server.asked == []


def card(folder, text):
    (folder / 'README.md').write_text(f'---\n{text}\n---\n# A data set\n')


def files(folder, *names):
    """Two splits of Parquet, which anything but the address could be taken from."""
    for name in names or ('train', 'validation'):
        make_rows(range(4)).to_parquet(folder / f'{name}.parquet')


def data_files(value):
    def write(folder, address):
        files(folder)
        text = json.dumps(value).replace('ADDRESS', address).replace('HOST', address.removeprefix('http://'))
        card(folder, f'configs:\n- config_name: default\n  data_files: {text}')

    return write


def data_dir(folder, address):
    files(folder)
    card(folder, f'configs:\n- config_name: default\n  data_dir: {address}/data')


def second_config(folder, address):
    files(folder)
    own = '- config_name: default\n  data_files: train.parquet'
    card(folder, f'configs:\n{own}\n- config_name: other\n  data_files: {address}/a.parquet')


def yaml_of_its_own(folder, address):
    files(folder)
    (folder / '.huggingface.yaml').write_text(f'configs:\n- config_name: default\n  data_files: {address}/a.parquet\n')


def with_alias(folder, address):
    files(folder)
    card(folder, f'a: &a [{address}/a.parquet]\nconfigs:\n- config_name: default\n  data_files: *a')


def legacy_infos(folder, address):
    data_files(f'{address}/a.parquet')(folder, address)
    (folder / 'dataset_infos.json').write_text(
        json.dumps({'default': {'download_checksums': {f'{address}/a.parquet': {'num_bytes': 1, 'checksum': None}}}})
    )


def script(folder, address):
    name = folder.name
    (folder / f'{name}.py').write_text(f'import urllib.request\nurllib.request.urlopen("{address}/script")\n')


def saved(folder, address):
    make_splits().save_to_disk(folder)
    for state in folder.glob('*/state.json'):
        content = json.loads(state.read_text())
        content['_data_files'] = [dict(filename=f'{address}/data.arrow')]
        state.write_text(json.dumps(content))


def saved_elsewhere(folder, address):
    make_splits().save_to_disk(folder)
    rows = folder.parent / 'secret'
    make_rows(range(4)).save_to_disk(rows)
    for state in folder.glob('*/state.json'):
        content = json.loads(state.read_text())
        content['_data_files'] = [dict(filename=f'../../secret/{next(rows.glob("*.arrow")).name}')]
        state.write_text(json.dumps(content))


def saved_splits(name):
    def write(folder, address):
        make_splits().save_to_disk(folder)
        (folder / 'dataset_dict.json').write_text(json.dumps(dict(splits=['train', name.replace('ADDRESS', address)])))

    return write


def metadata(column, kind='csv'):
    def write(folder, address):
        write_folder(folder)
        value = f'{address}/a.png'
        for split in ('train', 'validation'):
            text = json.dumps({column: value}) if kind == 'jsonl' else f'{column}\n{value}'
            (folder / split / f'metadata.{kind}').write_text(f'{text}\n')

    return write


def table(place):
    """Rows of images that are named by addresses."""

    def write(folder, address):
        where = place.replace('ADDRESS', address)
        names = [where] * 2
        value = dict(image=names, label=[0, 1], mask=names)
        for split in ('train', 'validation'):
            pyarrow.parquet.write_table(pyarrow.table(value), folder / f'{split}.parquet')

    return write


def structs(folder, address):
    """Images of ``datasets.Image`` whose path is an address."""
    features = make_rows(range(1)).features
    rows = make_rows(range(2)).to_dict()
    rows['image'] = rows['mask'] = [dict(bytes=None, path=f'{address}/{row}.png') for row in range(2)]
    rows = datasets.Dataset.from_dict(rows, features=features).data.table  # the library would ask while it saves
    for split in ('train', 'validation'):
        pyarrow.parquet.write_table(rows, folder / f'{split}.parquet')


def csv(folder, address):
    for split in ('train', 'validation'):
        (folder / f'{split}.csv').write_text(f'image,label,mask\n{address}/a.png,0,{address}/m.png\n')


def json_lines(folder, address):
    for split in ('train', 'validation'):
        line = json.dumps(dict(image=f'{address}/a.png', label=0, mask=f'{address}/m.png'))
        (folder / f'{split}.jsonl').write_text(f'{line}\n')


def packed(folder, address):
    for split in ('train', 'validation'):
        with zipfile.ZipFile(folder / f'{split}.zip', 'w') as archive:
            archive.writestr('a.png', encode(make_image(0))['bytes'])


def lance(folder, address):
    (folder / 'train.lance').mkdir()
    (folder / 'train.lance/data.lance').write_text(address)


def iceberg(folder, address):
    (folder / 'metadata').mkdir()
    record = {'format-version': 2, 'location': address, 'metadata-log': [], 'current-snapshot-id': 1}
    (folder / 'metadata/v1.metadata.json').write_text(json.dumps(record))


HOSTILE = {
    'address': data_files('ADDRESS/a.parquet'),
    'address in a list': data_files(['train.parquet', 'ADDRESS/a.parquet']),
    'address of a split': data_files([dict(split='train', path='ADDRESS/a.parquet')]),
    'addresses of a split': data_files([dict(split='train', path=['train.parquet', 'ADDRESS/a.parquet'])]),
    'address with a pattern': data_files('ADDRESS/*.parquet'),
    'https': data_files('https://HOST/a.parquet'),
    'hub': data_files('hf://datasets/me/pets/a.parquet'),
    'S3': data_files('s3://bucket/a.parquet'),
    'FTP': data_files('ftp://HOST/a.parquet'),
    'WebHDFS': data_files('webhdfs://HOST/a.parquet'),
    'chain': data_files('zip://a.parquet::ADDRESS/a.zip'),
    'cache of an address': data_files('filecache::ADDRESS/a.parquet'),
    'reference': data_files('reference://::ADDRESS/a.json'),
    'mail address': data_files('http:HOST/a.parquet'),
    'folder of an address': data_dir,
    'another config': second_config,
    'YAML of its own': yaml_of_its_own,
    'alias': with_alias,
    'legacy infos': legacy_infos,
    'script': script,
    'saved state': saved,
    'saved state elsewhere': saved_elsewhere,
    'split of an address': saved_splits('ADDRESS/train'),
    'split elsewhere': saved_splits('../secret'),
    'outside': data_files('../../secret/*.parquet'),
    'outside, absolute': data_files('/etc/*.csv'),
    'metadata': metadata('file_name'),
    'metadata as JSON': metadata('file_name', 'jsonl'),
    'column of addresses': table('ADDRESS/a.png'),
    'column of the hub': table('hf://datasets/me/pets/a.png'),
    'column of S3': table('s3://bucket/a.png'),
    'column of chains': table('zip://a.png::ADDRESS/a.zip'),
    'column of rows': table('rows://other/train/image/1'),
    'structs': structs,
    'CSV': csv,
    'JSON': json_lines,
    'packed images': packed,
    'Lance': lance,
    'Iceberg': iceberg,
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'pets').mkdir()
    (tmp_path / 'secret').mkdir()
    return tmp_path / 'pets'


@pytest.mark.parametrize('kind', HOSTILE)
def test_no_folder_has_a_server_asked(kind, folder, server):
    HOSTILE[kind](folder, server.address)
    for build, options in ((vt.HuggingFaceDataset, {}), (vt.HuggingFaceSegDataset, dict(classes=CLASSES))):
        with pytest.raises(UserError, match='pets') as error:
            build(str(folder), split='train', **options)
        assert '\n' not in str(error.value)


@pytest.mark.parametrize('kind', [*HOSTILE][::3])
def test_nor_has_it_the_data_check(kind, folder, server, tmp_path):
    HOSTILE[kind](folder, server.address)
    (tmp_path / 'config.py').write_text(CONFIG)
    options = [f'data_root={folder}']
    result = run_forked('check_dataset.py', 'config.py', cwd=tmp_path, options=options)
    assert result.returncode == 1
    assert 'Traceback' not in result.stderr
    assert 'pets' in result.stdout


@pytest.mark.parametrize('name', ['ADDRESS/pets', 'hf://datasets/me/pets', 's3://bucket/pets', 'zip://::ADDRESS/a.zip'])
def test_nor_has_it_a_name(name, server):
    with pytest.raises(UserError, match='is an address, but nothing is downloaded: set data_root to a local data set'):
        vt.HuggingFaceDataset(name.replace('ADDRESS', server.address))


def test_the_server_would_answer(server, folder):
    """The tests above can fail: what the library is told to follow, without the looks before it, is asked for."""
    address = f'webhdfs{server.address.removeprefix("http")}'
    card(folder, f'configs:\n- config_name: default\n  data_files: {address}/a.parquet')
    with pytest.raises(OSError, match=r'.'):
        datasets.load_dataset(str(folder))
    assert server.asked
    server.asked.clear()


DAMAGED = {
    'no YAML': 'configs: [',
    'no list': 'configs: 3',
    'no configurations': 'configs: [1, a]',
    'nested': f'configs: {"[" * 5000}',
    'unfolds': 'a: &a [1,1,1,1,1,1,1,1,1,1]\n'
    + ''.join(f'{b}: &{b} [{",".join([f"*{a}"] * 10)}]\n' for a, b in zip('abcdefgh', 'bcdefghi'))
    + 'configs:\n- config_name: default\n  data_files: *i',
}


@pytest.mark.parametrize('kind', DAMAGED)
@pytest.mark.parametrize('name', ['README.md', '.huggingface.yaml'])
def test_a_damaged_card_is_one_line(name, kind, folder):
    files(folder)
    text = DAMAGED[kind]
    (folder / name).write_text(f'---\n{text}\n---\n' if name == 'README.md' else text)
    with pytest.raises(UserError, match='pets') as error:
        vt.HuggingFaceDataset(str(folder))
    assert '\n' not in str(error.value)
    assert len(str(error.value)) < 1000


HONEST = {
    'no card': '',
    'a card alone': 'license: mit\nhomepage: https://example.org/a',
    'files': 'configs:\n- config_name: default\n  data_files: train.parquet',
    'files of splits': 'configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: [tr*.parquet]',
    'another config': 'configs:\n- config_name: other\n  data_files: train.parquet\n- config_name: more\n'
    '  data_files: validation.parquet',
    'a folder below': 'configs:\n- config_name: default\n  data_dir: below',
}


@pytest.mark.parametrize('kind', HONEST)
def test_honest_folders_are_read(kind, folder):
    place = folder / 'below' if kind == 'a folder below' else folder
    place.mkdir(exist_ok=True)
    files(place)
    if HONEST[kind]:
        card(folder, HONEST[kind])
    dataset = vt.HuggingFaceDataset(str(folder), name='other' if kind == 'another config' else None, pipeline=LOAD)
    assert len(dataset) == 4
    assert dataset.metainfo['classes'] == tuple(CLASSES)
    pixels = {dataset[index]['inputs'].permute(1, 2, 0).numpy().tobytes() for index in range(len(dataset))}
    assert pixels == {make_image(seed).tobytes() for seed in range(4)}


def test_honest_images_with_masks_by_their_table(folder):
    names = [name for seed in range(2) for name in (f'{seed}.png', f'{seed}_mask.png')]
    contents = [encode(make(seed))['bytes'] for seed in range(2) for make in (make_image, make_mask)]
    entries = dict(zip(names, contents))
    entries['metadata.csv'] = b'file_name,mask_file_name\n0.png,0_mask.png\n1.png,1_mask.png\n'
    (folder / 'train').mkdir()
    for name, content in entries.items():
        (folder / 'train' / name).write_bytes(content)
    load = [dict(type='mmseg.LoadImageFromFile'), dict(type='mmseg.LoadAnnotations'), dict(type='mmseg.PackSegInputs')]
    dataset = vt.HuggingFaceSegDataset(str(folder), classes=['sea', 'cat', 'dog'], pipeline=load)
    assert len(dataset) == 2
    for index in range(2):
        sample = dataset[index]
        assert (sample['inputs'].permute(1, 2, 0).numpy() == make_image(index)).all()
        assert (sample['data_samples'].gt_sem_seg.data[0].numpy() == make_mask(index)).all()


def test_honest_archives_of_samples(folder):
    with tarfile.open(folder / 'train.tar', 'w') as archive:
        for seed in range(3):
            for name, content in ((f'{seed}.png', encode(make_image(seed))['bytes']), (f'{seed}.cls', b'1')):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    dataset = vt.HuggingFaceDataset(str(folder), image='png', label=None, pipeline=LOAD)
    assert len(dataset) == 3
    assert (dataset[2]['inputs'].permute(1, 2, 0).numpy() == make_image(2)).all()


def test_names_with_colons_are_files(folder, monkeypatch):
    folder = folder.rename(folder.with_name('a:b'))
    files(folder)
    monkeypatch.chdir(folder.parent)
    assert len(vt.HuggingFaceDataset('a:b')) == 4
    assert len(vt.HuggingFaceDataset('a:b/train.parquet')) == 4
