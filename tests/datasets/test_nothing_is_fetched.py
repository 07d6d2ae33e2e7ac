"""No server is asked by whatever a data set's folder names: requests are counted by one on this machine."""

import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import datasets
import pyarrow
import pytest
from forked_tools import run_forked
from hugging_face_data import CLASSES, encode, make_image, make_rows, make_splits
from tool_runner import ROOT

import vt
from vt.errors import UserError

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


def metadata(name, text):
    def write(folder, address):
        for split in ('train', 'validation'):
            (folder / split).mkdir()
            (folder / split / f'metadata.{name}').write_text(text.replace('ADDRESS', address))

    return write


def column(value):
    """Saved rows whose images are named by addresses or paths."""

    def write(folder, address):
        names = [value.replace('ADDRESS', address)] * 2
        rows = datasets.Dataset.from_dict(dict(image=names, label=[0, 1], mask=names))
        datasets.DatasetDict(train=rows, validation=rows).save_to_disk(folder)

    return write


def structs(folder, address):
    """Images of ``datasets.Image`` whose path is an address."""
    make_splits().save_to_disk(folder)
    rows = make_rows(range(2)).to_dict()
    rows['image'] = rows['mask'] = [dict(bytes=None, path=f'{address}/{row}.png') for row in range(2)]
    rows = datasets.Dataset.from_dict(rows, features=make_rows(range(1)).features).data.table
    for file in folder.glob('*/*.arrow'):  # the library would ask while it saves
        with pyarrow.ipc.new_stream(str(file), rows.schema) as stream:
            stream.write_table(rows)


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
    'outside': data_files('../../secret/*.parquet'),
    'outside, absolute': data_files('/etc/*.csv'),
    'metadata': metadata('csv', 'file_name\nADDRESS/a.png\n'),
    'metadata as JSON': metadata('jsonl', '{"file_name": "ADDRESS/a.png"}\n'),
    'column of addresses': column('ADDRESS/a.png'),
    'column of the hub': column('hf://datasets/me/pets/a.png'),
    'column of S3': column('s3://bucket/a.png'),
    'column of chains': column('zip://a.png::ADDRESS/a.zip'),
    'column of rows': column('rows://other/train/image/1'),
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


@pytest.mark.parametrize('split', ['ADDRESS/train', '../secret'])
def test_nor_has_it_a_split(split, folder, server):
    split = split.replace('ADDRESS', server.address)
    make_splits().save_to_disk(folder)
    make_rows(range(4)).save_to_disk(folder.parent / 'secret')
    (folder / 'dataset_dict.json').write_text(json.dumps(dict(splits=['train', split])))
    assert len(vt.HuggingFaceDataset(str(folder))) == 12
    with pytest.raises(UserError, match='pets'):
        vt.HuggingFaceDataset(str(folder), split)


@pytest.mark.parametrize('name', ['ADDRESS/pets', 'hf://datasets/me/pets', 's3://bucket/pets', 'zip://::ADDRESS/a.zip'])
def test_nor_has_it_a_name(name, server):
    with pytest.raises(UserError, match='data_root is a folder that save_to_disk of datasets wrote'):
        vt.HuggingFaceDataset(name.replace('ADDRESS', server.address))


def test_the_server_would_answer(server, folder):
    """The tests above can fail: what the library is told to follow is asked for."""
    address = f'webhdfs{server.address.removeprefix("http")}'
    files(folder)
    card(folder, f'configs:\n- config_name: default\n  data_files: {address}/a.parquet')
    with pytest.raises(OSError, match=r'.'):
        datasets.load_dataset(str(folder))
    assert server.asked
    server.asked.clear()


def test_names_with_colons_are_files(folder, monkeypatch):
    folder = folder.rename(folder.with_name('a:b'))
    make_rows(range(4)).save_to_disk(folder)
    monkeypatch.chdir(folder.parent)
    assert len(vt.HuggingFaceDataset('a:b')) == 4


def test_links_out_of_the_folder_are_not_followed(folder):
    make_splits().save_to_disk(folder)
    (file,) = folder.glob('train/*.arrow')
    file.symlink_to(file.rename(folder.parent / 'secret/data.arrow'))
    with pytest.raises(UserError, match='is a link out of its folder'):
        vt.HuggingFaceDataset(str(folder))
