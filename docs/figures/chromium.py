"""Chromium without a window, for figures of pages and for tests of them."""

import contextlib
import shutil
from collections.abc import Iterator

from selenium import webdriver


@contextlib.contextmanager
def open_chromium(*arguments: str) -> Iterator[webdriver.Chrome]:
    """Start Chromium with further arguments, and end it."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which('chromium')
    for argument in ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage', *arguments):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which('chromedriver')))
    try:
        yield browser
    finally:
        browser.quit()
