"""Names of classes and files that a terminal would obey, that are markup, or that are no text."""

import json
import os

import pytest
from bad_input.images import RGB, encode
from bad_input.small_runs import FOLDER, refuse, train
from tool_runner import assert_one_line, call, run, succeed

from vt.analysis.tables import print_table, to_csv, to_markdown
from vt.explorer.views import View
from vt.pages import render

RED = '\x1b[31mred\x1b[0m'
NAMES = [RED, 'two\nlines', 'bell\a', '\x9b31m', '\u202eback', 'x' * 600, os.fsdecode(b'\xff')]


def write(path, content=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(RGB) if content is None else content)


@pytest.mark.parametrize('name', [RED, os.fsdecode(b'\xff\xfe')])
def test_a_class_folder_that_a_terminal_would_obey_is_refused_before_a_run(name, tmp_path):
    for folder in (name, 'dog'):
        for index in range(2):
            write(tmp_path / 'data/images' / folder / f'{index}.png')
    result = train(tmp_path, FOLDER)
    what = 'must be 1 to 500 characters of UTF-8 without control characters'
    assert_one_line(result, f'of the list of classes of CustomDataset {what}')
    checked = call('check_dataset.py', 'config.py', '--out', 'r.json', cwd=tmp_path)
    assert checked.returncode == 1
    assert 'not read' in json.loads((tmp_path / 'r.json').read_text())['counts']
    assert not any(name in text for done in (result, checked) for text in (done.stdout, done.stderr))


def test_names_of_any_language_in_a_locale_without_them(folder):
    for old, new in (('cat', 'caf\u00e9'), ('dog', '\u65e5\u672c')):
        (folder / f'data/images/{old}').rename(folder / f'data/images/{new}')
    (folder / 'config.py').write_text(FOLDER)
    env = dict(os.environ, PYTHONUTF8='0', LC_ALL='C')
    succeed(run('train.py', 'config.py', '--work-dir', 'sch\u00f6n', cwd=folder, env=env))
    assert (folder / 'sch\u00f6n/epoch_1.pth').is_file()


def test_names_in_an_encoding_without_them(folder):
    (folder / 'data/images/cat').rename(folder / 'data/images/\u732b')
    (folder / 'config.py').write_text(FOLDER)
    result = run('check_dataset.py', 'config.py', cwd=folder, env=dict(os.environ, PYTHONIOENCODING='ascii'))
    assert '\\u732b' in result.stdout
    assert 'UnicodeEncodeError' not in result.stderr


def test_a_bad_file_of_such_a_name_is_named_without_it(folder, tmp_path):
    write(tmp_path / f'data/images/dog/{RED}.png', b'no image')
    write(tmp_path / 'data/images/dog' / os.fsdecode(b'\xff.png'), b'no image')
    line = refuse(tmp_path, FOLDER.replace('batch_size=4', 'batch_size=6'))
    assert '.png cannot be read: ' in line
    assert '\x1b' not in line
    (tmp_path / 'config.py').write_text(FOLDER)
    result = call('check_dataset.py', 'config.py', '--out', 'r.json', cwd=tmp_path)
    assert result.returncode == 1
    assert '\x1b' not in result.stdout + result.stderr + (tmp_path / 'r.json').read_text()
    assert '\\x1b[31mred\\x1b[0m.png cannot be read: ' in result.stdout
    assert '\\udcff.png cannot be read: ' in result.stdout


@pytest.mark.parametrize('name', NAMES)
def test_tables_show_names_and_obey_none(name, capsys):
    rows = [{'class': name, 'share': '1'}, {'class': '[red]x[/red]', 'share': '2'}]
    print_table(rows, title=name, notes=[name])
    texts = [capsys.readouterr().out, to_markdown(rows), to_csv(rows)]
    assert [len(text.splitlines()) for text in texts[1:]] == [4, 3]
    for text in texts:
        text.encode()
        assert all(line.isprintable() for line in text.splitlines())
        assert '[red]x[/red]' in text


def test_reports_show_names_as_text():
    evil = '"><script>alert(1)</script>\'&'
    view = View(evil, evil, evil, rows=[{evil: evil, 'share': evil}])
    module = (evil, [[view], [view]])
    page = render('explorer/report.html.j2', models=[evil], images=[(evil, [(evil, [view], [module])])])
    assert '<script>alert' not in page
    assert evil not in page
    assert page.count('&lt;script&gt;alert(1)&lt;/script&gt;') > 10
