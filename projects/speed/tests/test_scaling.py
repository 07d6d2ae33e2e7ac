"""Scaling of time with pixels and tokens: exponents, and the lines of a figure."""

import pytest

from projects.speed.scaling import exponent, scaling_lines
from projects.speed.tests.test_comparison import measurement


def test_exponents_are_powers():
    xs = [1, 4, 16]
    assert exponent(xs, [5 * x**0.5 for x in xs]) == pytest.approx(0.5)


def test_lines_over_pixels_and_tokens():
    sizes = [measurement('a', (side, side), seconds=[side**2], token_side=[3.0, 3.0]) for side in (10, 20)]
    tokens = [measurement('b', (10, 10), count, seconds=[count]) for count in (16, 8)]
    assert scaling_lines(sizes, 'pixels') == {'a': ([100, 400], [100, 400]), 'a: token side': ([100, 400], [3, 3])}
    assert scaling_lines(tokens, 'tokens') == {'b': ([8, 16], [8, 16])}


def test_lines_differ_by_what_their_measurements_differ_in():
    found = [measurement(size=(s, s), kind=kind) for s in (10, 20) for kind in ('inference', 'training')]
    assert set(scaling_lines(found, 'pixels')) == {'a, inference', 'a, training'}
