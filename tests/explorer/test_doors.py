"""Who the page answers to, how much it takes, what is left of uploads when it ends: real processes and requests."""

import http.client
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager

import cv2
import numpy as np
import pytest
from apis.small_models import make
from explorer.served_page import browse
from forked_tools import ForkedTool
from tool_runner import ROOT

pytest.importorskip('gradio', reason="the page needs Gradio: pip install 'visual-transformers[explorer]'")
SECONDS = 600  # until something that does not come is given up; a loaded machine takes its time


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    return make(tmp_path_factory.mktemp('a model'), 'resnet18-half_digits')[:2]


@pytest.fixture(scope='module')
def png():
    return cv2.imencode('.png', np.random.default_rng(0).integers(0, 256, (50, 60, 3), np.uint8))[1].tobytes()


class Explorer:
    """``tools/explore.py`` with a folder for what is temporary.

    Args:
        model: config and checkpoint.
        temporary: the folder.
    """

    def __init__(self, model, temporary):
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        self.temporary = temporary
        temporary.mkdir(exist_ok=True)
        arguments, env = [*model, '--port', self.port, '--images', '1'], os.environ | dict(TMPDIR=str(temporary))
        self.tool = ForkedTool('explore.py', *arguments, cwd=temporary.parent, env=env)

    def wait_until_served(self):
        end = time.monotonic() + SECONDS
        while 'until Ctrl-C' not in self.tool.stdout:
            assert self.tool.process.is_alive(), self.tool.stderr
            assert time.monotonic() < end, self.tool.stderr
            time.sleep(0.05)
        return self

    def end(self, number):
        self.tool.send_signal(number)
        return self.tool.wait(SECONDS).returncode

    @property
    def folders(self):
        return sorted(path for path in self.temporary.glob('vt_explorer_*') if path.is_dir() and not path.is_symlink())

    def ask(self, method, path, body=None, **headers):
        """Status and text of an answer; names of headers have ``_`` for ``-``."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=SECONDS)
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, headers, encode_chunked='Transfer-Encoding' in headers)
            answer = connection.getresponse()
            return answer.status, answer.read(2000).decode(errors='replace')
        except (ConnectionError, http.client.HTTPException):
            return 'closed', ''  # while the rest of a body that is refused is sent
        finally:
            connection.close()

    def upload(self, content, **headers):
        body = form(content)
        return self.ask('POST', '/gradio_api/upload', body, Content_Type='multipart/form-data; boundary=X', **headers)


def form(content, name='mine.png'):
    head = f'--X\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    return head.encode() + content + b'\r\n--X--\r\n'


@contextmanager
def explore(model, temporary):
    explorer = Explorer(model, temporary)
    try:
        yield explorer.wait_until_served()
    finally:
        explorer.end(signal.SIGKILL)


@pytest.fixture(scope='module')
def page(model, tmp_path_factory):
    with explore(model, tmp_path_factory.mktemp('a page') / 'temporary') as page:
        yield page


FOREIGN = {
    'another site': dict(Origin='http://elsewhere.example'),
    'another port': dict(Origin='http://127.0.0.1:1'),
    'no port': dict(Origin='http://127.0.0.1'),
    'https': dict(Origin='https://127.0.0.1:{port}'),
    'a longer name': dict(Origin='http://127.0.0.1:{port}.elsewhere.example'),
    'null': dict(Origin='null'),
    'empty': dict(Origin=''),
    'cross-site': dict(Sec_Fetch_Site='cross-site'),
    'same-site': dict(Sec_Fetch_Site='same-site'),
    'a frame': dict(Sec_Fetch_Site='cross-site', Sec_Fetch_Mode='navigate', Sec_Fetch_Dest='iframe'),
}
PATHS = [
    ('POST', '/gradio_api/upload'),
    ('POST', '/gradio_api/queue/join'),
    ('GET', '/gradio_api/queue/data?session_hash=a'),
    ('POST', '/gradio_api/run/predict'),
    ('GET', '/gradio_api/file=/etc/passwd'),
    ('GET', '/config'),
    ('GET', '/'),
    ('PUT', '/gradio_api/anything'),
]


@pytest.mark.parametrize('kind', FOREIGN)
def test_other_pages_are_refused(kind, page, png):
    headers = {name: value.format(port=page.port) for name, value in FOREIGN[kind].items()}
    for method, path in PATHS:
        assert page.ask(method, path, b'' if method != 'GET' else None, **headers)[0] == 403, (method, path)
    assert page.upload(png, **headers)[0] == 403
    upgrade = dict(Connection='Upgrade', Upgrade='websocket', Sec_WebSocket_Version='13', Sec_WebSocket_Key='YQ==')
    assert page.ask('GET', '/gradio_api/queue/join', **upgrade, **headers)[0] in (400, 403)
    assert not any(page.temporary.glob('vt_explorer_*/*/mine.png'))


OWN = {
    'itself': dict(Origin='http://127.0.0.1:{port}', Sec_Fetch_Site='same-origin'),
    'by its name': dict(Origin='http://localhost:{port}'),
    'through a tunnel': dict(Origin='http://localhost:8080', Host='localhost:8080'),
    'no browser': {},
}


@pytest.mark.parametrize('kind', OWN)
def test_the_page_itself_is_not(kind, page, png):
    headers = {name: value.format(port=page.port) for name, value in OWN[kind].items()}
    status, text = page.upload(png, **headers)
    assert status == 200
    assert 'mine.png' in text
    status, _ = page.ask('GET', '/config', **headers)
    assert status == 200


def test_a_link_may_be_followed_and_a_foreign_name_may_not(page):
    link = dict(Sec_Fetch_Site='cross-site', Sec_Fetch_Mode='navigate', Sec_Fetch_Dest='document')
    assert page.ask('GET', '/', **link)[0] == 200
    assert page.ask('GET', '/config', **link)[0] == 403
    foreign = dict(Host='elsewhere.example', Origin='http://elsewhere.example')
    assert page.ask('GET', '/config', **foreign)[0] == 400


def test_uploads_have_a_limit_together(model, png, tmp_path):
    with explore(model, tmp_path / 'temporary') as page:
        (folder,) = page.folders
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert page.upload(bytes(2**21))[0] == 200
        (folder / 'earlier').mkdir()
        with (folder / 'earlier/large.png').open('wb') as file:
            file.truncate(509 * 2**20)  # and what has no blocks counts
        assert page.upload(bytes(2**20))[0] == 413  # the form around it is too much
        status, text = page.upload(bytes(2**21))
        assert (status, text) == (413, 'The uploads of this page are limited to 512 MB and 1000 files in total.')
        before = sorted(folder.rglob('*'))
        chunks = (form(bytes(2**22))[start : start + 2**16] for start in range(0, 2**22, 2**16))
        chunked = dict(Transfer_Encoding='chunked', Content_Type='multipart/form-data; boundary=X')
        assert page.ask('POST', '/gradio_api/upload', chunks, **chunked)[0] in (413, 'closed')
        deadline = time.monotonic() + SECONDS
        while sorted(folder.rglob('*')) != before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sorted(folder.rglob('*')) == before  # what was begun is gone
        (folder / 'earlier/large.png').unlink()
        assert page.upload(png)[0] == 200
        for number in range(1000):
            (folder / f'earlier/{number}').touch()
        assert page.upload(png)[0] == 413


def test_a_person_is_told_of_the_limit(model, png, tmp_path):
    with explore(model, tmp_path / 'temporary') as page, browse(f'http://127.0.0.1:{page.port}') as browser:
        browser.wait(lambda browser: 'Shown: ' in browser.text('#status'))
        (folder,) = page.folders
        (folder / 'earlier').mkdir()
        with (folder / 'earlier/large.png').open('wb') as file:
            file.truncate(600 * 2**20)
        (tmp_path / 'mine.png').write_bytes(png)
        browser.drop(tmp_path / 'mine.png')
        browser.wait(lambda browser: 'limited to 512 MB and 1000 files in total' in browser.text('body'))


@pytest.mark.parametrize(('number', 'code'), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)])
def test_uploads_are_gone_when_it_ends(number, code, model, png, tmp_path):
    with explore(model, tmp_path / 'temporary') as page:
        assert page.upload(png)[0] == 200
        assert list(page.temporary.glob('vt_explorer_*/*/mine.png'))
        with socket.create_connection(('127.0.0.1', page.port)) as connection:  # another upload has only begun
            head = f'POST /gradio_api/upload HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Length: 2000000\r\n'
            connection.sendall(f'{head}Content-Type: multipart/form-data; boundary=X\r\n\r\n'.encode())
            connection.sendall(form(bytes(1_000_000))[:-9])
            assert page.end(number) == code, page.tool.stderr
        assert not page.folders
        assert 'Traceback' not in page.tool.stderr


def test_what_a_killed_one_left_goes_with_the_next_and_no_other_ones(model, png, tmp_path):
    temporary = tmp_path / 'temporary'
    with explore(model, temporary) as killed, explore(model, temporary) as other:
        for page in (killed, other):
            assert page.upload(png)[0] == 200
        before = killed.folders
        assert len(before) == 2
        killed.end(signal.SIGKILL)
        assert killed.folders == before  # nobody was there to take it away
        kept, mine = temporary / 'vt_explorer_kept', tmp_path / 'mine'
        mine.mkdir()
        (mine / 'a.png').write_bytes(png)
        (temporary / 'vt_explorer_link').symlink_to(mine)
        (temporary / 'vt_explorer_file').write_bytes(png)
        kept.mkdir()
        kept.chmod(0o755)  # no explorer made it
        with explore(model, temporary) as third:
            assert len(third.folders) == 3
            assert len(set(third.folders) & set(before)) == 1
            assert other.upload(png)[0] == 200
            assert len([*temporary.glob('vt_explorer_*/*/mine.png')]) == 1
            assert other.end(signal.SIGTERM) == 143
            assert third.upload(png)[0] == 200
        assert (mine / 'a.png').exists()
        assert (temporary / 'vt_explorer_file').exists()
        assert kept.exists()


def test_many_at_once_remove_no_other_ones_folder(tmp_path):
    """Folders are made and found left at the same moments."""
    code = (
        'from vt.explorer.uploads import upload_folder\n'
        'for _ in range(150):\n'
        '    with upload_folder() as folder:\n'
        '        (folder / "a").mkdir()\n'
        '        (folder / "a/b").write_text("c")\n'
        '        assert (folder / "a/b").read_text() == "c"\n'
    )
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    command = [sys.executable, '-c', code]
    processes = [subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        assert process.wait(SECONDS) == 0, process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_names_of_a_stranger_are_text(model, tmp_path):
    """Of an image on the page: in the status, in the gallery; no element, no script, nothing that is fetched."""
    from selenium.common.exceptions import NoAlertPresentException

    name = '<img src=x onerror=alert(1)>&amp; ![a](b) \u202egnp.png'
    pixels = np.zeros((40, 40, 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'plain.png'), pixels)
    image = tmp_path / name
    (tmp_path / 'plain.png').rename(image)
    arguments = (*model, '--inputs', str(image))
    with explore(arguments, tmp_path / 'temporary') as page, browse(f'http://127.0.0.1:{page.port}') as browser:
        browser.wait(lambda browser: 'Shown: ' in browser.text('#status'))
        assert browser.text('#status') == f'Shown: {name}'.replace('\u202e', r'\u202e')
        assert not browser.all('img[src=x]')
        assert not browser.all('#status img')
        assert '\u202e' not in browser.text('body')
        with pytest.raises(NoAlertPresentException):
            _ = browser.driver.switch_to.alert
        assert re.search(r'onerror=alert', browser.text('body'))
