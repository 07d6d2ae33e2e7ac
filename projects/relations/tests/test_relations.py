"""The tasks of relations: each label follows from the image by the published rule, and no single object tells it."""

from collections import Counter
from itertools import combinations

import cv2
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import StandardScaler

from projects.relations.tasks import PSVRT, SVRT, Pathfinder, SortOfCLEVR
from projects.relations.tasks.pathfinder import CLEAR, DISC, LENGTHS, NUM_DISTRACTORS, SIZE, STEP, TURN
from projects.relations.tasks.same_different import GAP, HOLES, JUMP, RADII, draw_outline
from projects.relations.tasks.sort_of_clevr import ANSWERS, COLOURS, HALF, STRIP
from vt.errors import UserError

TASKS = {
    'svrt-1': (SVRT, dict(problem=1)),
    'svrt-7': (SVRT, dict(problem=7)),
    'psvrt': (PSVRT, dict()),
    'psvrt of four': (PSVRT, dict(item_size=3, image_size=48, num_items=4)),
    'sort-of-clevr': (SortOfCLEVR, dict(kind='relational')),
    'sort-of-clevr-twin': (SortOfCLEVR, dict(kind='non-relational')),
    'pathfinder-short': (Pathfinder, dict(length='short')),
    'pathfinder-long': (Pathfinder, dict(length='long')),
}
# As in configs/_base_, with the number of training images.
CONFIGURED = {
    'small psvrt': (PSVRT, dict(item_size=3, image_size=16), 16384),
    'svrt-1': (*TASKS['svrt-1'], 65536),
    'svrt-7': (*TASKS['svrt-7'], 32768),
    'sort-of-clevr': (*TASKS['sort-of-clevr'], 8192),
    'sort-of-clevr-twin': (*TASKS['sort-of-clevr-twin'], 8192),
    'pathfinder-short': (*TASKS['pathfinder-short'], 2048),
    'pathfinder-long': (*TASKS['pathfinder-long'], 8192),
}


def build(name, number, **options):
    kind, own = TASKS[name]
    return kind(num_images=number, serialize_data=False, **own, **options)  # which takes longer than the images


def iter_data_infos(dataset):
    return [dataset.get_data_info(index) for index in range(len(dataset))]


@pytest.mark.parametrize('name', TASKS)
def test_an_image_follows_from_its_seed_split_and_index(name):
    first, again = build(name, 6), build(name, 6)
    for info, other in zip(iter_data_infos(first), [again.get_data_info(index) for index in range(5, -1, -1)][::-1]):
        assert np.array_equal(info['img'], other['img'])
        assert (info['gt_label'], info['related']) == (other['gt_label'], other['related'])
        assert info['img'].dtype == np.uint8
        height, width, colours = info['img'].shape
        assert colours == 3
        for left, top, right, bottom in (*info['related'], *info['others']):
            assert 0 <= left < right <= width and 0 <= top < bottom <= height  # noqa: PT018
    others = build(name, 6, split='test'), build(name, 6, split='val'), build(name, 6, seed=1)
    images = [info['img'].tobytes() for dataset in (first, *others) for info in iter_data_infos(dataset)]
    assert len(set(images)) == 24
    info['img'][:] = 0  # what a pipeline does to its image it does not do to the next epoch's
    assert first.get_data_info(5)['img'].any()


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=() if name == 'small psvrt' else pytest.mark.slow) for name in CONFIGURED]
)
def test_no_test_image_is_one_that_trains(name):
    kind, options, number = CONFIGURED[name]
    train, test = (
        kind(split=split, num_images=length, serialize_data=False, **options)
        for split, length in (('train', number), ('test', 2048))
    )
    trained, tested = ({info['img'].tobytes() for info in iter_data_infos(dataset)} for dataset in (train, test))
    assert len(tested) > 2000
    assert not trained & tested


def outlines(image):
    """Each outline as an image of its own, from the image alone."""
    _, labels, statistics, _ = cv2.connectedComponentsWithStats((image[..., 0] == 0).astype(np.uint8), connectivity=8)
    found = []
    for number, (left, top, width, height, _) in enumerate(statistics[1:], 1):
        own = labels[top : top + height, left : left + width] == number
        found.append((own.shape, own.tobytes()))
    return found


@pytest.mark.parametrize(('problem', 'groups'), [(1, {0: [1, 1], 1: [2]}), (7, {0: [2, 2, 2], 1: [3, 3]})])
def test_outlines_are_the_same_as_the_problem_says(problem, groups):
    for info in iter_data_infos(SVRT(problem, num_images=60, serialize_data=False)):
        assert sorted(Counter(outlines(info['img'])).values()) == groups[info['gt_label']]


def test_an_outline_is_drawn_as_the_published_generator_does():
    """Neighbouring points, within the ring; an edge's middle jumps by at most a fifth of its length."""
    for seed in range(50):
        points = draw_outline(np.random.default_rng(seed), 2.5, 10)
        distances, steps = np.hypot(*points.T), np.diff(points, axis=0, append=points[:1])
        assert 2.5 - 1e-9 <= distances.min() < distances.max() <= 10 + 1e-9
        assert np.hypot(*steps.T).max() <= GAP * 2**0.5 + 1e-9
        assert len(points) > 12
    assert JUMP == 1 / 5
    whole, hole = 128 // 6, 128 // 64  # at 128x128; problem 1 takes 2.5 times their halves
    assert {problem: 2 * radius for problem, radius in RADII.items()} == {1: 2.5 * whole / 2, 7: whole}
    assert {problem: 2 * radius for problem, radius in HOLES.items()} == {1: 2.5 * hole / 2, 7: hole}


def test_items_are_the_same_bit_by_bit_or_all_different():
    for name in ('psvrt', 'psvrt of four'):
        for info in iter_data_infos(build(name, 100)):
            boxes = [*info['related'], *info['others']]
            items = [info['img'][top:bottom, left:right, 0].tobytes() for left, top, right, bottom in boxes]
            assert len(set(items)) == len(items) - info['gt_label']
            assert (items[0] == items[1]) == bool(info['gt_label'])
            rest = info['img'].copy()
            for left, top, right, bottom in boxes:
                rest[top:bottom, left:right] = 128
            assert (rest == 128).all()


def read_scene(image):
    """Colour asked for, question, and of each colour its centre and whether it is a square, from the image alone."""
    names = [tuple(round(255 * part) for part in colour[::-1]) for colour in COLOURS]
    asked = names.index(tuple(image[0, 0].tolist()))
    question = int(np.flatnonzero((image[3] == 255).all(axis=-1))[0] // (len(image) / 3))
    masks = [(image[STRIP:] == name).all(axis=-1) for name in names]
    centres = np.array([np.argwhere(mask).mean(axis=0) for mask in masks])
    return asked, question, centres, [mask.sum() == (2 * HALF + 1) ** 2 for mask in masks]


def answer(kind, asked, question, centres, squares):
    distances = np.hypot(*(centres - centres[asked]).T)
    same = sum(square == squares[asked] for square in squares)
    height, width = 64 - STRIP, 64
    return {
        ('relational', 0): ('circle', 'square')[int(squares[np.argsort(distances)[1]])],
        ('relational', 1): ('circle', 'square')[int(squares[np.argmax(distances)])],
        ('relational', 2): str(same),
        ('non-relational', 0): ('circle', 'square')[int(squares[asked])],
        ('non-relational', 1): ('no', 'yes')[int(centres[asked][1] < width / 2)],
        ('non-relational', 2): ('no', 'yes')[int(centres[asked][0] < height / 2)],
    }[kind, question]


@pytest.mark.parametrize('kind', ['relational', 'non-relational'])
def test_the_answer_follows_from_the_scene(kind):
    right, asked = 0, Counter()
    for info in iter_data_infos(SortOfCLEVR(kind, num_images=150, serialize_data=False)):
        scene = read_scene(info['img'])
        asked[scene[1]] += 1
        right += ANSWERS[info['gt_label']] == answer(kind, *scene)
        assert len(info['related']) == {('relational', 2): 6, ('relational', 0): 2, ('relational', 1): 2}.get(
            (kind, scene[1]), 1
        )
    assert right == 150
    assert min(asked.values()) > 30


@pytest.mark.parametrize('length', LENGTHS)
def test_discs_end_one_path_or_two_and_all_else_is_alike(length):
    dataset = Pathfinder(length, num_images=30, serialize_data=False)
    for index, info in enumerate(iter_data_infos(dataset)):
        paths, discs_of = dataset.grow(dataset.stream(index))
        one, two = ([np.hypot(*(a - b)) for a, b in [discs_of[label]]] for label in (1, 0))
        assert one == pytest.approx(two)
        assert [len(path) for path in paths[:2]] == [LENGTHS[length]] * 2
        assert len(paths) <= 2 + NUM_DISTRACTORS
        assert all(len(path) == max(1, LENGTHS[length] // 3) for path in paths[2:])
        for path in paths:
            turns = np.abs(np.diff([angle for _, angle in path]))
            steps = np.hypot(*np.diff([middle for middle, _ in path], axis=0).T)
            assert turns.max(initial=0) <= TURN
            assert steps.max(initial=0) <= STEP + 1e-9
        middles = [np.array([middle for middle, _ in path]) for path in paths]
        apart = min(np.hypot(*(a[:, None] - b[None]).T).min() for a, b in combinations(middles, 2))
        assert apart > CLEAR
        discs = [(np.array(box[:2]) + DISC) for box in info['related']]
        ends = {(path, end): middles[path][end].round() for path in (0, 1) for end in (0, -1)}
        found = [min(ends, key=lambda end, disc=disc: np.hypot(*(ends[end] - disc))) for disc in discs]
        assert all((ends[end] == disc).all() for end, disc in zip(found, discs))
        assert len(set(found)) == 2
        assert (found[0][0] == found[1][0]) == bool(info['gt_label'])
    assert info['img'].shape == (SIZE, SIZE, 3)


@pytest.mark.parametrize('name', [name for name in TASKS if 'clevr' not in name])
def test_classes_are_as_frequent_as_each_other(name):
    assert np.bincount(build(name, 100).get_gt_labels()).tolist() == [50, 50]


def test_answers_are_as_frequent_as_their_questions_make_them():
    number = 1500
    relational, other = (
        np.bincount(SortOfCLEVR(kind, num_images=number, serialize_data=False).get_gt_labels(), minlength=10) / number
        for kind in ('relational', 'non-relational')
    )
    counts = [1 / 32, 5 / 32, 10 / 32, 10 / 32, 5 / 32, 1 / 32]  # of five others, as many have the shape
    np.testing.assert_allclose(relational, [0, 0, 1 / 3, 1 / 3, *(np.array(counts) / 3)], atol=0.05)
    np.testing.assert_allclose(other[2:], [1 / 6, 1 / 6, *[0] * 6], atol=0.05)
    assert other[:2].sum() == pytest.approx(2 / 3, abs=0.05)


def probe(features, labels, trained):
    """Share of the other images that a linear classifier, trained on the first ones, gets right."""
    scaled = StandardScaler().fit(features[:trained]).transform(features)
    classifier = RidgeClassifier(alpha=100.0).fit(scaled[:trained], labels[:trained])
    return classifier.score(scaled[trained:], labels[trained:])


def bound_of(chance, tested):
    """Four standard deviations above chance, which one of 15,000 probes passes without knowing anything."""
    return chance + 4 * np.sqrt(chance * (1 - chance) / tested)


@pytest.mark.parametrize(
    'name', ['svrt-1', pytest.param('svrt-7', marks=pytest.mark.slow), 'psvrt', 'pathfinder-short',
             pytest.param('pathfinder-long', marks=pytest.mark.slow)]
)  # fmt: skip
def test_pixels_and_counts_tell_nothing_to_a_linear_probe(name):
    trained, tested = 1000, 1000
    infos = iter_data_infos(build(name, trained + tested))
    labels = np.array([info['gt_label'] for info in infos])
    images = np.stack([info['img'][..., 0] for info in infos]).astype(np.float32) / 255  # without colours
    counts = [[(image < 0.25).sum(), (image > 0.75).sum(), image.mean(), image.std()] for image in images]
    if 'psvrt' in name:  # as many bits are black or white in each image, so that the deviation is the mean's square
        counts = [numbers[:3] for numbers in counts]
    bound = bound_of(0.5, tested)
    assert probe(images.reshape(len(images), -1), labels, trained) < bound
    assert probe(np.array(counts), labels, trained) < bound
    if 'pathfinder' in name:
        boxes = np.array([info['related'] for info in infos])[:, :, :2]
        distances = np.hypot(*(boxes[:, 0] - boxes[:, 1]).T)
        assert probe(distances[:, None] ** np.arange(1, 5), labels, trained) < bound


def test_sort_of_clevr_is_not_answered_from_pixels_and_hardly_from_counts():
    """The question alone tells 44 %, with the number of circles 71 %, without looking where anything is."""
    trained, tested = 2000, 2000
    dataset = build('sort-of-clevr', trained + tested)
    infos = iter_data_infos(dataset)
    labels = np.array([info['gt_label'] for info in infos])
    images = np.stack([info['img'] for info in infos]).astype(np.float32) / 255
    asked = [(info['img'][STRIP // 2, 2 + np.arange(3) * (SIZE - STRIP) // 2] == 255).all(axis=-1) for info in infos]
    questions = np.array(asked, float)
    assert (questions.sum(axis=1) == 1).all()
    chance = (1 / 2 + 1 / 2 + 10 / 32) / 3
    assert probe(images.reshape(len(images), -1)[:, ::4], labels, trained) < bound_of(chance, tested)
    ink = (images[:, STRIP:].min(axis=-1) < 0.9).sum(axis=(1, 2))
    square, circle = (2 * HALF + 1) ** 2, 49
    circles = np.eye(7)[(6 * square - ink) // (square - circle)]
    products = (questions[:, :, None] * circles[:, None]).reshape(len(images), -1)
    assert chance + 0.2 < probe(products, labels, trained) < bound_of(0.71, tested)


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: SVRT(2), 'problem=2 must be one of 1, 7'),
        (lambda: PSVRT(item_size=16), 'num_items=2 of item_size=16 need a larger image than image_size=32'),
        (lambda: PSVRT(item_size=1), 'num_items=2 and item_size=1 must be at least 2'),
        (lambda: PSVRT(item_size=2, num_items=5, image_size=64), 'num_items=5 are too many to differ in item_size=2'),
        (lambda: SortOfCLEVR('all'), "kind='all' is neither"),
        (lambda: Pathfinder('medium'), "length='medium' must be one of short, long"),
        (lambda: Pathfinder(split='all'), "split='all' must be one of train, test, val"),
    ],
)
def test_wrong_settings(make, message):
    with pytest.raises(UserError, match=message):
        make()


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'share'), [('svrt-1', 0.70), ('svrt-7', 0.78), ('small psvrt', 0.76)])
def test_numbers_of_dark_pixels_tell_trees_what_the_page_says(name, share):
    """Equal outlines and patterns have an even number of them, which varies more."""
    kind, options, _ = CONFIGURED[name]
    infos = iter_data_infos(kind(num_images=6000, serialize_data=False, **options))
    images = np.stack([info['img'][..., 0] for info in infos])
    dark, labels = (images < 64).sum(axis=(1, 2))[:, None], np.array([info['gt_label'] for info in infos])
    trees = HistGradientBoostingClassifier(max_leaf_nodes=7, max_iter=50, random_state=0).fit(
        dark[:3000], labels[:3000]
    )
    assert trees.score(dark[3000:], labels[3000:]) == pytest.approx(share, abs=0.04)
