"""Chromium without a window; tests that use it are skipped where there is none."""

import contextlib
import shutil

import pytest


@contextlib.contextmanager
def open_browser():
    """Start Chromium, and end it."""
    pytest.importorskip('selenium', reason='Selenium drives the browser: pip install selenium')
    from docs.figures.chromium import open_chromium

    if not shutil.which('chromium') or not shutil.which('chromedriver'):
        pytest.skip('there is no Chromium with its driver here: apt-get install chromium chromium-driver')
    with open_chromium('--window-size=1300,1800') as browser:
        yield browser


def show_as(browser, width, scheme):
    """Give the window a width, as of a phone, and a scheme of colours, ``'light'`` or ``'dark'``."""
    size = dict(width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)
    features = [dict(name='prefers-color-scheme', value=scheme)]
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', dict(features=features))


# Widths of what the page has and of the window, and the colours of paper and text.
LOOKS = """const root = document.documentElement, style = getComputedStyle(document.body);
return [root.scrollWidth, root.clientWidth, [style.backgroundColor, style.color]]"""
LIGHT, DARK = ['rgb(255, 255, 255)', 'rgb(29, 34, 43)'], ['rgb(20, 23, 28)', 'rgb(227, 230, 235)']
