"""Pages of a report, of data and of tokens are one house: a phone shows them, light and dark."""

import shutil

from apis.small_models import make
from browser import DARK, LIGHT, LOOKS, open_browser, show_as
from commands.test_data_page import CLASSIFICATION, check
from commands.test_evaluation_report import NAMES, ONE_LABEL, report, write_folders
from tool_runner import call, succeed

LONG = '<script>document.title = "taken"<' + 'long' * 30


def test_nothing_is_cut_off_and_colours_are_those_of_the_browser(work):
    root = work(ONE_LABEL)
    write_folders(root)
    report(root)
    for index, name in enumerate([NAMES[0], LONG]):
        shutil.copytree(root / 'data/test' / NAMES[index], root / 'train' / name)
    check(root, CLASSIFICATION, out='data_page')
    model = make(root, 'vt-resnet18-half_digits')[:2]
    image = root / f'{LONG}.png'
    shutil.copy(root / 'data/test/cat/0.png', image)
    succeed(call('explore.py', *model, '--compare', *model, '--inputs', image, '--html', 'tokens.html', cwd=root))
    with open_browser() as browser:
        for page in ('report/report.html', 'data_page/index.html', 'tokens.html'):
            found = []
            for width, scheme in [(390, 'light'), (390, 'dark'), (1400, 'light'), (1400, 'dark')]:
                show_as(browser, width, scheme)
                browser.get((root / page).as_uri())
                wide, seen, colours = browser.execute_script(LOOKS)
                assert wide <= seen, (page, width)
                found.append(colours)
            assert found == 2 * [LIGHT, DARK]
            assert browser.title != 'taken'
            assert browser.find_element('css selector', 'header h1').text == browser.title
