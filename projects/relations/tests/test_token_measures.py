"""Measures of tokens' attention against their definitions, written out as loops in float64.

Letters: N batch, L tokens, H and W size of the map.
"""

import itertools
import math

import pytest
import torch

from projects.relations import token_measures
from projects.relations.token_measures import attention_density, attention_entropy, measure_tokens, uniform_entropy

# N, L, H, W
SHAPES = [(2, 3, 4, 6), (1, 1, 1, 1), (3, 2, 1, 7)]


def random_maps(n, tokens, height, width):
    """Attention maps that sum to one."""
    maps = torch.randn(n, tokens, height * width, dtype=torch.float64).mul(2).softmax(dim=-1)
    return maps.view(n, tokens, height, width)


def places(height, width, image_size):
    """Centres of the pixels, in diagonals of the image, row by row."""
    diagonal = math.sqrt(image_size[0] ** 2 + image_size[1] ** 2)
    return [
        ((i + 0.5) * image_size[0] / height / diagonal, (j + 0.5) * image_size[1] / width / diagonal)
        for i in range(height)
        for j in range(width)
    ]


def pairwise_mean_squared_distance(first, first_places, second, second_places):
    total = 0.0
    for a, (y, x) in zip(first.flatten().tolist(), first_places):
        for b, (v, u) in zip(second.flatten().tolist(), second_places):
            total += a * b * ((y - v) ** 2 + (x - u) ** 2)
    return total


@pytest.mark.parametrize('shape', SHAPES)
def test_entropy_and_density_are_sums_over_pixels(shape):
    n, tokens, height, width = shape
    maps, region = random_maps(*shape), torch.rand(n, height, width, dtype=torch.float64)
    entropy, density = attention_entropy(maps), attention_density(maps, region)
    for index, token in itertools.product(range(n), range(tokens)):
        weights, inside = maps[index, token].flatten().tolist(), region[index].flatten().tolist()
        expected = -sum(a * math.log(a) for a in weights)
        assert entropy[index, token].item() == pytest.approx(expected, abs=1e-12)
        expected = sum(a * r for a, r in zip(weights, inside)) / sum(inside) * height * width
        assert density[index, token].item() == pytest.approx(expected)


@pytest.mark.parametrize(('size', 'label_size'), [((4, 6), (8, 18)), ((3, 5), (10, 7)), ((6, 6), (3, 3))])
def test_foreground_is_a_share_of_the_pixels_that_a_cell_touches(size, label_size):
    labels = torch.randint(0, 4, (2, *label_size))
    labels[:, 0, 0] = 255
    foreground, background = token_measures.foreground_and_background(labels, (0, 2, 255), size)  # 255 is ignored
    assert foreground.shape == background.shape == (2, *size)
    for n, i, j in itertools.product(range(2), range(size[0]), range(size[1])):
        (top, bottom), (left, right) = (
            (index * fine // coarse, -(-(index + 1) * fine // coarse))
            for index, fine, coarse in zip((i, j), label_size, size)
        )
        cell = labels[n, top:bottom, left:right].flatten().tolist()
        assert foreground[n, i, j].item() == pytest.approx(sum(label in (1, 3) for label in cell) / len(cell))
        assert background[n, i, j].item() == pytest.approx(sum(label in (0, 2) for label in cell) / len(cell))


@pytest.mark.parametrize('sizes', [[(4, 6)], [(6, 8), (3, 4), (1, 2)]])
def test_interactions_are_those_of_the_mixed_maps(sizes):
    """A_hat written out: every map is laid on the grid that all sizes divide, where its pixels become points."""
    n, tokens, image_size = 2, 3, (48, 64)
    maps = [random_maps(n, tokens, *size) for size in sizes]
    total = tokens * len(sizes)
    relation = torch.randn(n, total, total, dtype=torch.float64).softmax(dim=-1)
    found = token_measures.squared_distances(maps, relation, image_size)
    where = [places(*size, image_size) for size in sizes]
    for index, token in itertools.product(range(n), range(total)):
        own, own_places = maps[token // tokens][index, token % tokens], where[token // tokens]
        mixed, mixed_places = [], []
        for other in range(total):  # A_hat as a list of weighted points
            mixed.append(relation[index, token, other] * maps[other // tokens][index, other % tokens].flatten())
            mixed_places += where[other // tokens]
        expected = pairwise_mean_squared_distance(own, own_places, torch.cat(mixed), mixed_places)
        assert found['reach'][index, token].item() == pytest.approx(expected)
        looks = (own, own_places), (torch.cat(mixed), mixed_places)
        spreads = [pairwise_mean_squared_distance(a, where, a, where) for a, where in looks]
        assert found['spread'][index, token].item() == pytest.approx(spreads[0])
        assert found['shift'][index, token].item() == pytest.approx(expected - sum(spreads) / 2, abs=1e-12)


def test_all_measures_of_two_levels():
    maps = [random_maps(2, 3, 8, 6), random_maps(2, 2, 4, 3)]
    relation = torch.randn(2, 5, 5, dtype=torch.float64).softmax(dim=-1)
    labels = torch.randint(0, 3, (2, 32, 24))
    measured = measure_tokens(maps, relation, (32, 24), labels, background=(1,))
    others = torch.stack([1 - relation[:, token, token] for token in range(5)], dim=1)
    torch.testing.assert_close(torch.cat([values['to_others'] for values in measured], dim=1), others)
    for name, squares in token_measures.squared_distances(maps, relation, (32, 24)).items():
        torch.testing.assert_close(torch.cat([values[name] for values in measured], dim=1), squares)
    for values, level in zip(measured, maps):
        torch.testing.assert_close(values['entropy'], attention_entropy(level))
        foreground, background = token_measures.foreground_and_background(labels, (1,), level.shape[-2:])
        torch.testing.assert_close(values['on_foreground'], attention_density(level, foreground))
        torch.testing.assert_close(values['on_background'], attention_density(level, background))
        assert values['uniform_entropy'].flatten().tolist() == pytest.approx([uniform_entropy(*level.shape[-2:])] * 2)
        assert values['uniform_to_others'].flatten().tolist() == pytest.approx([0.8, 0.8])
        assert all(value.shape in {(2, level.shape[1]), (2, 1)} for value in values.values())


@pytest.mark.parametrize('size', [(40, 40), (20, 80)])
def test_uniform_maps_have_the_uniform_measures_and_what_cannot_be_measured_is_nan(size):
    even = torch.full((1, 1, *size), 1 / math.prod(size), dtype=torch.float64)
    (values,) = measure_tokens([even], None, size)
    unknown = {'reach', 'shift', 'to_others', 'on_foreground', 'on_background'}
    assert {key for key, value in values.items() if value.isnan().any()} == unknown
    assert values['entropy'].item() == pytest.approx(values['uniform_entropy'].item()) == math.log(math.prod(size))
    expected = (1 - 2 / (size[0] ** 2 + size[1] ** 2)) / 6  # a pixel's diagonal is sqrt(2) here
    assert values['spread'].item() == pytest.approx(expected)
    assert values['uniform_spread'].item() == pytest.approx(expected)
