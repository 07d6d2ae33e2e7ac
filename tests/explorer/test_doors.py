"""What the page gives away, how much it takes, what is left of uploads when it ends: real processes and requests."""

import re
import signal
import socket
import stat

import cv2
import numpy as np
import pytest
from apis.small_models import make
from explorer.served_page import HEAD, browse, explore
from forked_tools import run_forked
from tool_runner import assert_one_line

pytest.importorskip('gradio', reason="the page needs Gradio: pip install 'visual-transformers[explorer]'")


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    return make(tmp_path_factory.mktemp('a model'), 'resnet18-half_digits')[:2]


@pytest.fixture(scope='module')
def page(model, tmp_path_factory):
    with explore((*model, '--images', '1'), tmp_path_factory.mktemp('a page') / 'temporary') as page:
        yield page


def test_other_sites_and_names_read_nothing(page):
    """A browser gives an answer to another site only if the answer allows it; another name is one of DNS rebinding."""
    allowed = {}
    for origin in (f'http://127.0.0.1:{page.port}', 'http://elsewhere.example', 'null'):
        for path in ('/config', '/gradio_api/queue/data?session_hash=a'):
            answer = page.ask('HEAD', path, Origin=origin)
            allowed.setdefault(origin, set()).add(answer.headers.get('Access-Control-Allow-Origin'))
    assert [*allowed.values()] == [{f'http://127.0.0.1:{page.port}'}, {None}, {None}]
    assert page.ask('GET', '/config').status == page.ask('GET', '/config', Host='localhost:8080').status == 200
    assert page.ask('GET', '/config', Host='elsewhere.example').status == 400


def test_nothing_but_uploads_is_served_and_large_ones_are_refused(page, model):
    for path in ('/etc/passwd', *map(str, model), __file__):
        for address in (f'file={path}', f'file={path.replace("/", "%2F")}', f'file/{path}', f'file=../../../..{path}'):
            assert page.ask('GET', f'/gradio_api/{address.replace(" ", "%20")}').status in (403, 404), address
    assert page.upload(bytes(2**20)) == 200
    assert page.upload(bytes(33 * 2**20)) in (413, 'closed')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_uploads_are_private_and_gone_when_it_ends(number, model, tmp_path):
    with explore((*model, '--images', '1'), tmp_path / 'temporary') as page:
        assert page.upload(b'a') == 200
        (folder,) = page.temporary.glob('vt_explorer_*')
        assert list(folder.glob('*/mine.png'))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with socket.create_connection(('127.0.0.1', page.port)) as connection:  # another upload has only begun
            head = f'POST /gradio_api/upload HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Length: 2000000\r\n'
            connection.sendall(f'{head}Content-Type: multipart/form-data; boundary=X\r\n\r\n'.encode())
            connection.sendall(HEAD + bytes(2**20))
            assert page.end(number) == 0, page.tool.stderr
        assert not folder.exists()
        assert 'Traceback' not in page.tool.stderr


def test_a_port_that_cannot_be_served_is_one_line(model, tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        for port in (taken.getsockname()[1], 70000):
            result = run_forked('explore.py', *model, '--port', port, cwd=tmp_path)
            assert_one_line(result, f'port {port} cannot be served: give another one with --port')


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
