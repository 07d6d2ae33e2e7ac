"""Annotation files whose lines don't parse, and odd ones that do."""

import pytest
from bad_input.images import MASK, RGB, encode
from bad_input.kept_run import FOLDER, SCENES, assert_refused, train

GOOD = b'a.png 0\nb c.png 1\na.png 0\nb c.png 1\n'
ANNOTATED = FOLDER.replace("data_prefix='images',", "data_prefix='images', ann_file='list.txt',")
LISTED = SCENES.replace('img_suffix=', "ann_file='list.txt', img_suffix=")
BAD = {
    'no label': (b'a.png 0\nb.png\n', "list.txt, line 2 is 'b.png', without a label"),
    'label in words': (b'a.png cat\n', "list.txt, line 1 ends in 'cat', which is not a label"),
    'label that is not whole': (b'a.png 0\na.png 0.5\n', "list.txt, line 2 ends in '0.5', which is not a label"),
    'negative label': (GOOD + b'a.png -1\n', 'list.txt, line 5 has the label -1: labels start at 0'),
    'label outside': (GOOD + b'a.png 2\n', 'list.txt, line 5 has the label 2, outside the 2 classes (0 to 1)'),
    'comma-separated values': (
        b'path,label\na.png,0\n',
        'without a label: write a path, a space and a label',
    ),
    'tabs': (b'a.png\t0\n', 'without a label'),
    'empty line': (b'a.png 0\n\na.png 0\n', 'list.txt, line 2 is empty'),
    'empty file': (b'', 'list.txt is empty'),
    'NUL characters': (b'a.png 0\na\0.png 0\n', r'list.txt, line 2 holds the control character '),
    'other encoding': (b'a.png 0\n\xe4.png 0\n', 'list.txt, line 2 is not in UTF-8'),
    'UTF-16': ('a.png 0\n'.encode('utf-16'), 'list.txt, line 1 is not in UTF-8'),
    'byte order mark': (b'\xef\xbb\xbf' + GOOD, 'list.txt, line 1 begins with a byte order mark'),
    'an image': (encode(RGB), 'list.txt, line 1 is not in UTF-8'),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'data/images').mkdir(parents=True)
    (tmp_path / 'data/masks').mkdir()
    for name in ('a.png', 'b c.png'):
        (tmp_path / 'data/images' / name).write_bytes(encode(RGB))
        (tmp_path / 'data/masks' / name).write_bytes(encode(MASK))
    return tmp_path


@pytest.mark.parametrize('kind', BAD)
def test_a_bad_line_is_named_with_its_number(kind, folder, kept):
    content, message = BAD[kind]
    (folder / 'data/list.txt').write_bytes(content)
    assert_refused(train(folder, ANNOTATED, '--work-dir', kept), message, kept)


def test_a_bad_list_of_names_for_segmentation(folder, kept):
    for content, message in ((b'a\n\nb c\n', 'list.txt, line 2 is empty'), (b'a\nz\n', 'images/z.png does not exist')):
        (folder / 'data/list.txt').write_bytes(content)
        assert_refused(train(folder, LISTED, '--work-dir', kept), message, kept)


def test_files_that_are_missing(folder, kept):
    arguments = ['--work-dir', kept]
    assert_refused(train(folder, ANNOTATED, *arguments), 'there is no such annotation file', kept)
    (folder / 'data/list.txt').write_bytes(GOOD + b'gone.png 1\n')
    assert_refused(train(folder, ANNOTATED, *arguments), 'data/images/gone.png does not exist', kept)


def test_odd_lines_that_are_fine(folder):
    """Windows' line ends, spaces inside and around a name, an absolute path, no line end at the end."""
    absolute = str(folder / 'data/images/a.png').encode()
    (folder / 'data/list.txt').write_bytes(GOOD.replace(b'\n', b'\r\n') + b'  a.png 0 \n' + absolute + b' 1')
    result = train(folder, ANNOTATED)
    assert result.returncode == 0, result.stderr
    (folder / 'data/list.txt').write_bytes(b'a\r\nb c\r\na\nb c\n')
    result = train(folder, LISTED)
    assert result.returncode == 0, result.stderr
