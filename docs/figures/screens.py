"""Figures of pages in a browser: Chromium with its driver, and Selenium."""

import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from vt.errors import UserError

from .chromium import open_chromium
from .runs import trained

SECONDS = 300  # until a page is there
FIND = '[...document.querySelectorAll("h2")].find(title => title.textContent.includes("Worst"))'


@contextlib.contextmanager
def browser(address: str, width: int, height: int, scale: float = 1) -> Iterator[webdriver.Chrome]:
    """A page in a browser without a window."""
    with open_chromium('--hide-scrollbars') as page:
        size = dict(width=width, height=height, deviceScaleFactor=scale, mobile=False)
        page.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)
        page.get(address)
        yield page


def photograph(page: webdriver.Chrome) -> Image.Image:
    """Return what the window of a browser shows."""
    return Image.open(BytesIO(page.get_screenshot_as_png()))


def draw_report() -> Image.Image:
    """The head of the evaluation report of a classifier of photographs, and beside it the worst images."""
    with tempfile.TemporaryDirectory() as folder:
        trained('photos').test(report=folder, work_dir=folder)
        with browser(Path(folder, 'report.html').as_uri(), 740, 1000, 0.8) as page:
            head = photograph(page)
            page.execute_script(f'{FIND}.scrollIntoView()')
            both = Image.new('RGB', (2 * head.width + 10, head.height), 'white')
            both.paste(head, (0, 0))
            both.paste(photograph(page), (head.width + 10, 0))
            return both


def draw_explorer() -> Image.Image:
    """The explorer's page of a segmentor."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    command = 'explore', str(trained('scenes').folder), '--port', str(port)
    server = subprocess.Popen([sys.executable, '-m', 'vt', *command], stdout=subprocess.PIPE, text=True)
    try:
        while 'until Ctrl-C' not in (line := server.stdout.readline()):
            if not line:
                raise UserError(f'vt {" ".join(command)} ended')
        with browser(f'http://127.0.0.1:{port}', 1100, 1150) as page:
            WebDriverWait(page, SECONDS).until(lambda page: 'Shown: ' in page.find_element('css selector', 'body').text)
            return photograph(page)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(SECONDS)


FIGURES = {'report.png': draw_report, 'explorer.jpg': draw_explorer}
