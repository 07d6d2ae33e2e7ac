"""No server is asked by whatever a data set's folder names: requests are counted by one on this machine."""

import io
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import datasets
import pyarrow
import pytest
from hugging_face_data import CLASSES, make_rows, make_splits
from local_server import running
from tool_runner import ROOT

import vt
from vt.commands.check_dataset import read_data
from vt.engine.config.data import Data
from vt.engine.config.steps import RunOptions, prepare
from vt.errors import UserError

CONFIG = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_1xb32-90e_hugging-face.py'
model = dict(head=dict(num_classes=3))
"""


class Server(ThreadingHTTPServer):
    """A server of a data set that counts what it is asked for; every address leads to a file that is there."""

    def __init__(self):
        self.asked, content = [], io.BytesIO()
        make_rows(range(4)).to_parquet(content)
        self.content = content.getvalue()
        super().__init__(('127.0.0.1', 0), Handler)
        self.address = f'http://127.0.0.1:{self.server_port}'


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(f'{self.command} {self.path}')
        self.send_response(200)
        self.send_header('Content-Length', str(len(self.server.content)))
        self.end_headers()
        if self.command == 'GET':
            self.wfile.write(self.server.content)

    do_HEAD = do_CONNECT = do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture(scope='module')
def server():
    with running(Server()) as server:
        yield server


@pytest.fixture(autouse=True)
def surroundings(server, tmp_path, monkeypatch):
    """A cache of its own; whatever host is asked for, it is the server: as its proxy, its hub and its S3."""
    monkeypatch.setattr(datasets.config, 'HF_DATASETS_CACHE', tmp_path / 'cache')
    monkeypatch.setenv('HF_DATASETS_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setenv('HF_HOME', str(tmp_path / 'hub'))
    monkeypatch.setenv('NO_ALBUMENTATIONS_UPDATE', '1')  # or it asks for its newest version when it is imported
    for name in ('http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'HF_ENDPOINT', 'AWS_ENDPOINT_URL'):
        monkeypatch.setenv(name, server.address)
    for name in ('no_proxy', 'NO_PROXY'):
        monkeypatch.delenv(name, raising=False)
    server.asked.clear()
    yield
    assert server.asked == []


ADDRESSES = (
    *('ADDRESS/a.arrow', 'https://HOST/a.arrow', 'http:HOST/a.arrow', 'hf://datasets/me/pets/a.arrow', 's3://bucket/a'),
    *('ftp://HOST/a.arrow', 'webhdfs://HOST/a.arrow', 'zip://a.arrow::ADDRESS/a.zip', 'filecache::ADDRESS/a.arrow'),
    *('reference://::ADDRESS/a.json', 'rows://other/train/image/1', '../../secret/a.arrow', '/etc/passwd'),
)


def write_card(folder, address):
    """Parquet, images and a script, which the library reads by itself, with a card that names an address."""
    for split in ('train', 'validation'):
        make_rows(range(4)).to_parquet(folder / f'{split}.parquet')
        (folder / split).mkdir()
        (folder / split / 'metadata.csv').write_text(f'file_name\n{address}\n')
    configs = f'configs:\n- config_name: default\n  data_files: {address}\n'
    (folder / 'README.md').write_text(f'---\n{configs}---\n# A data set\n')
    (folder / '.huggingface.yaml').write_text(configs)
    (folder / 'pets.py').write_text(f'import urllib.request\nurllib.request.urlopen("{address}")\n')


def write_state(folder, address):
    make_splits().save_to_disk(folder)
    for state in folder.glob('*/state.json'):
        state.write_text(json.dumps(json.loads(state.read_text()) | dict(_data_files=[dict(filename=address)])))


def write_column(folder, address):
    """Images that are named by addresses or paths."""
    rows = datasets.Dataset.from_dict(dict(image=[address] * 2, label=[0, 1], mask=[address] * 2))
    datasets.DatasetDict(train=rows, validation=rows).save_to_disk(folder)


def write_structs(folder, address):
    """Images of ``datasets.Image`` whose path is an address."""
    make_splits().save_to_disk(folder)
    rows = make_rows(range(2)).to_dict()
    rows['image'] = rows['mask'] = [dict(bytes=None, path=address)] * 2
    rows = datasets.Dataset.from_dict(rows, features=make_rows(range(1)).features).data.table
    for file in folder.glob('*/*.arrow'):  # the library would ask while it saves
        with pyarrow.ipc.new_stream(str(file), rows.schema) as stream:
            stream.write_table(rows)


PLACES = dict(card=write_card, state=write_state, column=write_column, structs=write_structs)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'pets').mkdir()
    (tmp_path / 'secret').mkdir()
    return tmp_path / 'pets'


def named(address, server):
    return address.replace('ADDRESS', server.address).replace('HOST', server.address.removeprefix('http://'))


@pytest.mark.parametrize('address', ADDRESSES)
@pytest.mark.parametrize('place', PLACES)
def test_no_folder_has_a_server_asked(place, address, folder, server):
    make_rows(range(4)).save_to_disk(folder.parent / 'secret')
    next((folder.parent / 'secret').glob('*.arrow')).rename(folder.parent / 'secret/a.arrow')
    PLACES[place](folder, named(address, server))
    for build, options in ((vt.HuggingFaceDataset, {}), (vt.HuggingFaceSegDataset, dict(classes=CLASSES))):
        with pytest.raises(UserError, match='pets') as error:
            build(str(folder), split='train', **options)
        assert '\n' not in str(error.value)


@pytest.mark.parametrize('place', PLACES)
def test_nor_has_it_the_data_check(place, folder, server, tmp_path):
    PLACES[place](folder, named(ADDRESSES[0], server))
    (tmp_path / 'config.py').write_text(CONFIG)
    cfg = prepare(str(tmp_path / 'config.py'), RunOptions(dict(data_root=str(folder)))).cfg
    problems = read_data(Data(cfg), ('train', 'val'), 1)[0]['problems']
    assert problems
    assert all('pets' in f'{problem["file"]} {problem["message"]}' for problem in problems)


@pytest.mark.parametrize('address', [*ADDRESSES, '../secret'])
def test_nor_has_it_a_split(address, folder, server):
    split = named(address, server).removesuffix('/a.arrow')
    make_splits().save_to_disk(folder)
    make_rows(range(4)).save_to_disk(folder.parent / 'secret')
    (folder / 'dataset_dict.json').write_text(json.dumps(dict(splits=['train', split])))
    assert len(vt.HuggingFaceDataset(str(folder))) == 12
    words = 'secret/state.json links to a file outside its folder' if split.startswith('..') else 'pets'
    with pytest.raises(UserError, match=words):
        vt.HuggingFaceDataset(str(folder), split)


@pytest.mark.parametrize('name', ['ADDRESS/pets', 'hf://datasets/me/pets', 's3://bucket/pets', 'zip://::ADDRESS/a.zip'])
def test_nor_has_it_a_name(name, server):
    with pytest.raises(UserError, match='data_root must be a folder written by save_to_disk of datasets'):
        vt.HuggingFaceDataset(name.replace('ADDRESS', server.address))


def test_the_server_would_answer(server, folder):
    """The tests above can fail: what the library is told to follow is asked for."""
    address = f'webhdfs{server.address.removeprefix("http")}'
    make_rows(range(4)).to_parquet(folder / 'train.parquet')
    configs = f'configs:\n- config_name: default\n  data_files: {address}/a.parquet'
    (folder / 'README.md').write_text(f'---\n{configs}\n---\n')
    with pytest.raises(OSError, match=r'.'):
        datasets.load_dataset(str(folder))
    assert server.asked
    server.asked.clear()


def test_links_out_of_the_folder_are_not_followed(folder):
    make_splits().save_to_disk(folder)
    (file,) = folder.glob('train/*.arrow')
    file.symlink_to(file.rename(folder.parent / 'secret/data.arrow'))
    with pytest.raises(UserError, match='links to a file outside its folder'):
        vt.HuggingFaceDataset(str(folder))
