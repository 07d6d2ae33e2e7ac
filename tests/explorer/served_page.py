"""The explorer's page in a real browser, as a user has it."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import time

import pytest
from forked_tools import ForkedTool

HEAD = b'--X\r\nContent-Disposition: form-data; name="files"; filename="mine.png"\r\n\r\n'  # of a form
SECONDS = 600  # until something that does not come is given up; a loaded machine takes its time


class Page:
    """The page in Chromium.

    Args:
        driver: of the browser.
        address: of the page.
    """

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def all(self, selector):
        return self.driver.find_elements('css selector', selector)

    def text(self, selector):
        return self.driver.find_element('css selector', selector).text

    def wait(self, happened, seconds=20):
        """Until a function of the page gives something; elements that are replaced meanwhile are asked again."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        return WebDriverWait(self.driver, seconds, 0.05, ignored).until(lambda _: happened(self))

    def drop(self, *paths):
        place = self.driver.find_element('css selector', '#files input[type=file]')
        self.driver.execute_script('arguments[0].value = ""', place)  # Selenium adds to what it has, people do not
        place.send_keys('\n'.join(map(str, paths)))

    def table(self, name):
        """The rows of a view's table, as numbers where they are some; read at once, for it may be replaced."""
        script = 'return [...document.querySelectorAll(arguments[0])].map(r => [...r.children].map(c => c.textContent))'
        rows = self.driver.execute_script(script, f'[data-view={name}] tbody tr')
        return [[float(cell) for cell in row] for row in rows]


class Explorer:
    """``tools/explore.py`` with a folder for what is temporary.

    Args:
        arguments: config, checkpoint, and more.
        temporary: the folder.
    """

    def __init__(self, arguments, temporary):
        with socket.create_server(('127.0.0.1', 0)) as free:
            self.port = free.getsockname()[1]
        self.temporary = temporary
        temporary.mkdir(exist_ok=True)
        env = os.environ | dict(TMPDIR=str(temporary))
        self.tool = ForkedTool('explore.py', *arguments, '--port', self.port, cwd=temporary.parent, env=env)

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

    def ask(self, method, path, body=None, **headers):
        """An answer; names of headers have ``_`` for ``-``."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=SECONDS)
        connection.request(method, path, body, {name.replace('_', '-'): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer

    def upload(self, content):
        kind = 'multipart/form-data; boundary=X'
        try:
            return self.ask('POST', '/gradio_api/upload', HEAD + content + b'\r\n--X--\r\n', Content_Type=kind).status
        except ConnectionError:
            return 'closed'  # while the rest of a body that is refused is sent


@contextlib.contextmanager
def explore(arguments, temporary):
    explorer = Explorer(arguments, temporary)
    try:
        yield explorer.wait_until_served()
    finally:
        explorer.end(signal.SIGKILL)


@contextlib.contextmanager
def browse(address):
    """A page in a browser without a window; the test is skipped where there is none."""
    pytest.importorskip('selenium', reason='Selenium drives the browser: pip install selenium')
    chromium, driver = shutil.which('chromium'), shutil.which('chromedriver')
    if not chromium or not driver:
        pytest.skip('there is no Chromium with its driver here: apt-get install chromium chromium-driver')
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--window-size=1300,1800'):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        browser.get(address)
        yield Page(browser, address)
    finally:
        browser.quit()
