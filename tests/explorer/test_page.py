"""The explorer's page, in Chromium and by plain requests: its numbers, its words, what it gives away and takes."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import stat
import time

import cv2
import numpy as np
import pytest
import torch
from apis.small_models import make, sharpen
from bad_input.hostile_images import png
from browser import DARK, LIGHT, LOOKS, open_browser, show_as
from forked_tools import ForkedTool
from mmengine.dataset import pseudo_collate

from vt import apis, record_attention
from vt.errors import UserError

pytest.importorskip('gradio', reason='the page requires Gradio: pip install gradio')
SMALL = (
    'model = dict(backbone=dict(num_tokens=4, token_channels=64, relation=dict(num_heads=4), '
    'projector=dict(num_heads=2)), head=dict(in_channels=64))'
)
FIRST = 'backbone.layer4.0'
STRANGE = '<img src=x onerror=alert(1)>&amp; ![a](b) \u202egnp.png'  # the image that the page begins with
HEAD = b'--X\r\nContent-Disposition: form-data; name="files"; filename="mine.png"\r\n\r\n'  # of a form
FORM = 'multipart/form-data; boundary=X'
SECONDS = 600  # until something that does not come is given up; a loaded machine takes its time
# An event whose file was not uploaded.
FORGED = """const [path, done] = arguments;
const event = window.gradio_config.dependencies.find(each => each.targets.some(t => t[1] == 'upload'));
const file = [{path, orig_name: 'a.png', meta: {_type: 'gradio.FileData'}}];
const data = event.inputs.map((id, index) => index ? null : file);
const body = JSON.stringify({data, fn_index: event.id, session_hash: 'other'});
const options = {method: 'POST', headers: {'Content-Type': 'application/json'}, body};
await fetch('/gradio_api/queue/join', options);
done(await (await fetch('/gradio_api/queue/data?session_hash=other')).text());"""


class Explorer:
    """``tools/explore.py`` with a folder for what is temporary."""

    def __init__(self, arguments, temporary):
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        self.temporary = temporary
        temporary.mkdir()
        env = os.environ | dict(TMPDIR=str(temporary))
        self.tool = ForkedTool('explore.py', *arguments, '--port', self.port, cwd=temporary.parent, env=env)

    def wait_until_served(self):
        end = time.monotonic() + SECONDS
        while 'until Ctrl-C' not in self.tool.stdout:
            assert self.tool.process.is_alive(), self.tool.stderr
            assert time.monotonic() < end, self.tool.stderr
            time.sleep(0.05)

    def end(self, number):
        self.tool.send_signal(number)
        return self.tool.wait(SECONDS).returncode

    def ask(self, method, path, body=None, **headers):
        """An answer; names of headers have ``_`` for ``-``."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=SECONDS)
        connection.request(method, path, body, {name.replace('_', '-'): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer

    def upload(self, content):
        try:
            body = HEAD + content + b'\r\n--X--\r\n'
            return self.ask('POST', '/gradio_api/upload', body, Content_Type=FORM).status
        except ConnectionError:
            return 'closed'  # while the rest of a body that is refused is sent


@contextlib.contextmanager
def explore(arguments, temporary):
    explorer = Explorer(arguments, temporary)
    try:
        explorer.wait_until_served()
        yield explorer
    finally:
        explorer.end(signal.SIGKILL)


class Page:
    """The page in a browser."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def all(self, selector):
        return self.driver.find_elements('css selector', selector)

    def text(self, selector):
        return self.driver.find_element('css selector', selector).text

    def wait(self, happened):
        """Until a function of the page gives something; elements that are replaced meanwhile are asked again."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, SECONDS, 0.05, [StaleElementReferenceException]).until(lambda _: happened(self))

    def wait_for(self, status):
        self.wait(lambda page: page.text('#status') == status)

    def drop(self, *paths):
        place = self.driver.find_element('css selector', '#files input[type=file]')
        self.driver.execute_script('arguments[0].value = ""', place)  # Selenium adds to what it has, people do not
        place.send_keys('\n'.join(map(str, paths)))

    def table(self, name):
        """The rows of a view's table of numbers; read at once, for it may be replaced."""
        script = 'return [...document.querySelectorAll(arguments[0])].map(r => [...r.children].map(c => c.textContent))'
        return np.array(self.driver.execute_script(script, f'[data-view={name}] tbody tr'), float)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('an explorer')


@pytest.fixture(scope='module')
def classifier(folder):
    made = make(folder, 'vt-resnet18_digits', SMALL)
    sharpen(made[1])
    return made


@pytest.fixture(scope='module')
def plain(folder):
    return make(folder, 'resnet18-half_digits')[:2]  # it has no tokens


@pytest.fixture(scope='module')
def image(folder):
    """One of a user's, of no size in particular."""
    path = folder / 'my own.png'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8))
    return path


@pytest.fixture(scope='module')
def served(folder, classifier, plain, image):
    shutil.copy(image, folder / STRANGE)
    arguments = *classifier[:2], '--compare', *plain, '--inputs', folder / STRANGE
    with explore(arguments, folder / 'temporary') as served:
        yield served
        assert_uploads_are_private_and_gone_when_it_ends(served, signal.SIGINT)


def assert_uploads_are_private_and_gone_when_it_ends(served, number):
    assert served.upload(b'a') == 200
    (folder,) = served.temporary.glob('vt_explorer_*')
    assert list(folder.glob('*/mine.png'))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = len(served.tool.stderr)
    with socket.create_connection(('127.0.0.1', served.port)) as connection:  # another upload has only begun
        head = f'POST /gradio_api/upload HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Length: 2000000\r\n'
        connection.sendall(f'{head}Content-Type: {FORM}\r\n\r\n'.encode() + HEAD + bytes(2**20))
        assert served.end(number) == 0, served.tool.stderr
    assert not folder.exists()
    assert 'Traceback' not in served.tool.stderr[before:]


@pytest.mark.slow  # Ctrl-C ends the one that the tests above share
@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it(number, plain, tmp_path):
    with explore((*plain, '--images', '1'), tmp_path / 'temporary') as served:
        assert_uploads_are_private_and_gone_when_it_ends(served, number)


@pytest.fixture(scope='module')
def page(served):
    """The page in Chromium."""
    with open_browser() as browser:
        browser.get(f'http://127.0.0.1:{served.port}')
        page = Page(browser, f'http://127.0.0.1:{served.port}')
        page.wait(lambda page: 'Shown: ' in page.text('#status'))
        yield page


@pytest.fixture(scope='module')
def records(classifier, image):
    inferencer = apis.ClassificationInferencer(*classifier[:2])
    inputs = inferencer.model.data_preprocessor(pseudo_collate([inferencer.pipeline(str(image))]), False)['inputs']
    with torch.no_grad(), record_attention(inferencer.model) as records:
        inferencer.model(inputs, mode='tensor')
    return records


def test_names_of_a_stranger_are_text(page):
    """In the status, in the gallery; no element, no script, nothing that is fetched."""
    from selenium.common.exceptions import NoAlertPresentException

    assert page.text('#status') == f'Shown: {STRANGE}'.replace('\u202e', r'\u202e')
    assert not page.all('img[src=x]') + page.all('#status img')
    assert '\u202e' not in page.text('body')
    assert 'onerror=alert' in page.text('body')
    with pytest.raises(NoAlertPresentException):
        _ = page.driver.switch_to.alert


def test_a_dropped_image_shows_what_the_recorder_has(page, image, records):
    page.drop(image)
    page.wait_for('Shown: my own.png')
    looks = records[f'{FIRST}.tokenizer'].attention[0].mean(dim=0)  # L, H, W
    relation = records[f'{FIRST}.relation'].attention[0].mean(dim=0)
    np.testing.assert_allclose(page.table('relation')[:, 1:], relation, atol=1e-4)
    np.testing.assert_allclose(page.table('entropy')[:, 1], torch.special.entr(looks).sum((1, 2)), atol=1e-4)
    assert len(page.all('[data-view]')) >= 6
    assert 'This model has no part with attention' in page.text('body')
    assert len(page.all('[data-view=prediction]')) == 2


def test_all_of_it_is_done_by_keyboard(page, records):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(page.driver).send_keys(*keys).perform()

    def reach(name):
        for _ in range(60):
            press(Keys.TAB)
            label = page.driver.execute_script(
                'const e = document.activeElement;'
                'return e == document.body ? "" : e.getAttribute("aria-label") || (e.closest("label") || e).textContent'
            )
            if name in label:
                return
        pytest.fail(f'{name} is not reached')

    page.driver.execute_script('document.activeElement.blur(); window.scrollTo(0, 0)')
    reach('drop files')
    reach('humbnail')  # the images at hand
    press(Keys.TAB, Keys.ENTER)
    page.wait(lambda page: 'onerror' in page.text('#status'))
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    press(Keys.ENTER)
    page.wait_for('Shown: my own.png')
    reach('Module')
    press('4.1', Keys.ENTER)
    relation = records['backbone.layer4.1.relation'].attention[0].mean(dim=0)
    page.wait(lambda page: np.allclose(page.table('relation')[:, 1:], relation, atol=1e-4))


def test_what_is_no_image_is_one_line_and_the_page_goes_on(page, image, folder):
    before = page.table('relation')
    (folder / 'damaged.png').write_bytes(image.read_bytes()[:200])
    (folder / 'empty.png').write_bytes(b'')
    (folder / 'wide.png').write_bytes(png(14_000, 14_000, colour=2, whole=False))
    (folder / 'huge.png').write_bytes(bytes(40_000_000))
    page.drop(folder / 'damaged.png', folder / 'empty.png', folder / 'wide.png')
    page.wait_for(
        'damaged.png is not a readable image; empty.png is not a readable image; '
        'wide.png has more than 178,956,970 pixels: make it smaller, or raise VT_MAX_PIXELS in the environment'
    )
    assert page.all('#status [role=alert]')
    page.drop(folder / 'huge.png')
    page.wait(lambda page: 'exceed the maximum' in page.text('body'))
    assert (page.table('relation') == before).all()
    page.drop(image)
    page.wait_for('Shown: my own.png')


@pytest.mark.parametrize('width', [390, 1400])
def test_it_fits_phones_and_has_the_colours_of_the_reports(page, width):
    found = []
    for scheme in ('light', 'dark'):
        show_as(page.driver, width, scheme)
        page.driver.refresh()
        page.wait(lambda page: 'Shown: ' in page.text('#status'))
        found.append(page.driver.execute_script(LOOKS))
    assert all(wide <= seen for wide, seen, *_ in found)
    assert [colours for *_, colours in found] == [LIGHT, DARK]


def test_an_event_takes_uploads_only_and_nothing_is_fetched(page, image):
    upload = page.driver.execute_async_script(FORGED, str(image))
    assert '"success":false' in upload
    assert 'Shown' not in upload
    fetched = page.driver.execute_script('return performance.getEntriesByType("resource").map(each => each.name)')
    assert fetched
    assert all(name.startswith((page.address, 'data:')) for name in fetched), fetched


def test_other_sites_and_names_read_nothing(served):
    """A browser gives an answer to another site only if the answer allows it; another name is one of DNS rebinding."""
    allowed = {}
    for origin in (f'http://127.0.0.1:{served.port}', 'http://elsewhere.example', 'null'):
        for path in ('/config', '/gradio_api/queue/data?session_hash=a'):
            answer = served.ask('HEAD', path, Origin=origin)
            allowed.setdefault(origin, set()).add(answer.headers.get('Access-Control-Allow-Origin'))
    assert [*allowed.values()] == [{f'http://127.0.0.1:{served.port}'}, {None}, {None}]
    assert served.ask('GET', '/config').status == served.ask('GET', '/config', Host='localhost:8080').status == 200
    assert served.ask('GET', '/config', Host='elsewhere.example').status == 400


def test_nothing_but_uploads_is_served_and_large_ones_are_refused(served, plain):
    for path in ('/etc/passwd', *map(str, plain), __file__):
        for address in (f'file={path}', f'file={path.replace("/", "%2F")}', f'file/{path}', f'file=../../../..{path}'):
            assert served.ask('GET', f'/gradio_api/{address.replace(" ", "%20")}').status in (403, 404), address
    assert served.upload(bytes(2**20)) == 200
    assert served.upload(bytes(33 * 2**20)) in (413, 'closed')


def test_a_port_that_cannot_be_served_is_a_user_error():
    from vt.explorer.page import build_page, launch

    with socket.create_server(('127.0.0.1', 0)) as taken:
        for port in (taken.getsockname()[1], 70000):
            with pytest.raises(UserError, match=f'cannot serve on port {port}: choose another one with --port'):
                launch(build_page({}, []), port)
