"""Each input has its own output, and none lies outside of the folder."""

from pathlib import Path

import pytest

from vt.paths import distinct_paths

LONG = 'x' * 251
TWICE = ['a.jpg.png', 'a.jpg', 'a.jpg-2.png', 'a.jpg-2']


@pytest.mark.parametrize(
    ('wished', 'places'),
    [
        (['a.jpg', 'a.png', 'b/a.jpg'], ['a.jpg.png', 'a.png', 'b/a.jpg.png']),
        (['a.jpg', 'a.jpg.png'], ['a.jpg.png', 'a.jpg-2.png']),
        (TWICE, ['a.jpg.png', *(f'a.jpg-2{end}.png' for end in ('', '-2', '-3'))]),
        (['A.png', 'a.png', 'B/a.png', 'b/A.png'], ['A.png', 'a-2.png', 'B/a.png', 'b/A-2.png']),
        (['é.png', 'e\u0301.png'], ['é.png', 'e\u0301-2.png']),
        (['../../x/a.png', '/x/a.png', 'x/a.png'], ['x/a.png', 'x/a-2.png', 'x/a-3.png']),
        (['a.png', 'a.png/b.png', 'A.PNG/c.png'], ['a-2.png', 'a.png/b.png', 'A.PNG/c.png']),
        (['..', '/', '.'], ['unnamed.png', 'unnamed-2.png', 'unnamed-3.png']),
        (['a\n\x1b[31m\udcff.png'], ['a_n_x1b[31m_udcff.png']),
        ([f'{LONG}.png', f'{LONG}.jpg'], [f'{"x" * 200}.png', f'{"x" * 200}-2.png']),
        (['é' * 120], ['é' * 100 + '.png']),
        (['/'.join(['deep'] * 900) + '/a.png'], ['a.png']),
    ],
)  # fmt: skip
def test_places_are_distinct_and_inside(wished, places, tmp_path):
    found = distinct_paths({f'{number}': Path(place) for number, place in enumerate(wished)})
    assert [str(place) for place in found.values()] == places
    for place in found.values():
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(place))
        assert path.resolve().is_relative_to(tmp_path)
    assert all((tmp_path / place).read_text() == str(place) for place in found.values())
