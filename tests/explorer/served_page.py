"""The explorer's page in a real browser, as a user has it."""

import contextlib
import shutil
import socket
import time

import pytest
from forked_tools import ForkedTool


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

    def click(self, selector, column, row):
        """Click a place of an image, in parts of its sides, once it has stopped moving."""
        from selenium.webdriver import ActionChains

        script = """const [selector, done] = arguments;
        const image = document.querySelector(selector);
        image.scrollIntoView({block: 'center'});
        const place = () => JSON.stringify([image.complete, image.src, image.getBoundingClientRect()]);
        const before = place();
        setTimeout(() => done(image.isConnected && image.complete && place() == before), 200);"""
        self.wait(lambda page: page.driver.execute_async_script(script, selector))
        image = self.driver.find_element('css selector', selector)
        offsets = [int((share - 0.5) * image.size[side]) for share, side in ((column, 'width'), (row, 'height'))]
        ActionChains(self.driver).move_to_element_with_offset(image, *offsets).click().perform()

    def table(self, name):
        """The rows of a view's table, as numbers where they are some; read at once, for it may be replaced."""
        script = 'return [...document.querySelectorAll(arguments[0])].map(r => [...r.children].map(c => c.textContent))'
        rows = self.driver.execute_script(script, f'[data-view={name}] tbody tr')
        return [[float(cell) for cell in row] for row in rows]


@contextlib.contextmanager
def serve(*arguments, cwd):
    """The address at which ``tools/explore.py`` serves its page."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    tool = ForkedTool('explore.py', *arguments, '--port', port, cwd=cwd)
    try:
        end = time.monotonic() + 600
        while f'http://127.0.0.1:{port}/' not in tool.stdout:
            assert tool.process.is_alive(), tool.stderr
            assert time.monotonic() < end, tool.stderr
            time.sleep(0.05)
        yield f'http://127.0.0.1:{port}'
    finally:
        tool.send_signal(2)
        tool.wait(20)
        tool.send_signal(9)


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
