"""A variable that a base has used already, and a child sets without effect, is an error."""

import pytest

from vt.engine.checks.variables import check_variables, own_words
from vt.errors import UserError

READABLE = ('model', 'train_dataloader', 'val_dataloader')
BASE = """
crop = 32
train_pipeline = [dict(type='Crop', size=crop), dict(type='Pack')]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=[dict(type='Pack')]))
"""


def check(folder, child, options=(), between=None):
    (folder / 'base.py').write_text(BASE)
    if between is not None:
        (folder / 'between.py').write_text(f"_base_ = ['base.py']\n{between}")
    (folder / 'child.py').write_text(f'_base_ = {"base.py" if between is None else "between.py"!r}\n{child}')
    check_variables(folder / 'child.py', READABLE, options)


@pytest.mark.parametrize(
    'child',
    [
        '',
        "train_pipeline = [dict(type='Pack')]\ntrain_dataloader = dict(dataset=dict(pipeline=train_pipeline))",
        '_own = 5',
        'my_notes = "abc"',  # no name of a setting
        'crop = 32',  # as in the base
        'for model, _ in []:\n    train_dataloader = dict(size=[lod for lod, _ in []])',
        'for _ in range(3):\n    other = 5\ntrain_dataloader = dict(size=other)',
        'train_dataloader = dict(batch_size=4)',
        'train_dataloader = dict(dataset=dict(pipeline=[*_base_.train_pipeline]))',
        'crop = 64\ntrain_dataloader = dict()\ntrain_dataloader.update(size=crop)',
    ],
)
def test_what_has_an_effect_passes(tmp_path, child):
    check(tmp_path, child)


@pytest.mark.parametrize(
    ('child', 'readers'),
    [
        ("train_pipeline = [dict(type='Pack')]", 'train_dataloader'),
        ('train_pipeline = [*_base_.train_pipeline]', 'train_dataloader'),
        ('crop = 64', 'train_pipeline'),
        ("crop = 64\ntrain_pipeline = [dict(type='Crop', size=crop), dict(type='Pack')]", 'train_dataloader'),
    ],
)
def test_what_has_none_is_refused(tmp_path, child, readers):
    with pytest.raises(UserError) as caught:
        check(tmp_path, child)
    name = 'crop' if readers == 'train_pipeline' else 'train_pipeline'
    words = f'because {readers} of a base already used it: set {readers} with {name} again, too'
    assert f'child.py: setting {name} has no effect, {words}' in str(caught.value)


def test_up_to_three_that_used_it_are_named(tmp_path):
    (tmp_path / 'base.py').write_text('size = 3\n' + ''.join(f'{name} = [size for _ in [1]]\n' for name in 'dcba'))
    with pytest.raises(UserError, match='because a, b, c of a base already used it: set a, b, c instead'):
        check_variables(tmp_path / 'base.py', 'abcd', ['size'])


def test_what_only_an_inherited_file_leaves_over_passes(tmp_path):
    check(tmp_path, 'train_dataloader = dict(batch_size=4)', between='std = 3')
    with pytest.raises(UserError, match=r"between\.py: there is no setting 'models'; did you mean model"):
        check(tmp_path, '', between='models = 3')


def test_a_grandchild_may_use_what_its_base_has_set(tmp_path):
    between = "train_pipeline = [dict(type='Pack')]"
    with pytest.raises(UserError, match='between'):
        check(tmp_path, '', between=between)
    check(tmp_path, 'train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))', between=between)


def test_options(tmp_path):
    check(tmp_path, '', ['train_dataloader.batch_size', 'model.depth'])
    with pytest.raises(
        UserError, match='cfg-options: setting train_pipeline has no effect, because train_dataloader of a base'
    ):
        check(tmp_path, '', ['train_pipeline.0.size'])


def test_whose_words_they_are(tmp_path):
    check(tmp_path, 'train_dataloader = dict(mine=1)')
    assert own_words(tmp_path / 'child.py', ['mine', 'crop', 'from_an_option']) == {'mine', 'from_an_option'}


def test_a_base_of_an_installed_library(tmp_path):
    base = "_base_ = 'mmseg::fastscnn/fast_scnn_8xb4-160k_cityscapes-512x1024.py'\n"
    path = tmp_path / 'child.py'
    path.write_text(f'{base}train_pipeline = []\n')
    with pytest.raises(UserError, match='setting train_pipeline has no effect, because train_dataloader'):
        check_variables(path, READABLE)
    path.write_text(f'{base}train_pipeline = []\ntrain_dataloader = dict(dataset=dict(pipeline=train_pipeline))\n')
    check_variables(path, READABLE)


@pytest.mark.parametrize(
    ('text', 'advice'),
    [
        ('param_schedulers = []', "there is no setting 'param_schedulers'; did you mean param_scheduler"),
        ('custom_hook = []', "there is no setting 'custom_hook'; did you mean custom_hooks"),
        ('load_form = "a.pth"', "there is no setting 'load_form'; did you mean load_from"),
        ('total_epochs = 3', "there is no setting 'total_epochs'; did you mean train_cfg.max_epochs"),
        ('optimizer = dict(lr=1)', "there is no setting 'optimizer'; did you mean optim_wrapper"),
        ('train_dataset = dict()', "there is no setting 'train_dataset'; did you mean train_dataloader"),
        ('dataset = dict()', "there is no setting 'dataset'; did you mean train_dataloader.dataset"),
        ('resume_from = "a.pth"', "there is no setting 'resume_from'; did you mean load_from and resume=True"),
        ('data_root = "a"', "there is no setting 'data_root'; did you mean train_dataloader.dataset.data_root"),
        ('data_preprocessor = dict()', "no setting 'data_preprocessor'; did you mean model.data_preprocessor"),
    ],
)
def test_names_that_nothing_reads(tmp_path, text, advice):
    readable = ['param_scheduler', 'custom_hooks', 'load_from', 'optim_wrapper', 'train_cfg', 'tta_pipeline']
    readable += ['train_dataloader']
    (tmp_path / 'base.py').write_text('total = 3\ntest_pipeline = []\n')
    path = tmp_path / 'child.py'
    path.write_text(f"_base_ = 'base.py'\n{text}\n")
    with pytest.raises(UserError, match=advice):
        check_variables(path, readable)
    path.write_text(f"_base_ = 'base.py'\n{text}\nload_from = str({text.split(' ')[0]})\n")  # something reads it
    check_variables(path, readable)


def test_a_saved_config_has_all_variables(tmp_path):
    (tmp_path / 'saved.py').write_text('num_classes = 3\noptimizer = dict()\ntest_pipeline = []\nmine = 3\n')
    check_variables(tmp_path / 'saved.py', ['model', 'tta_pipeline'], ['model.depth'])
    for option, words in (('num_classes', 'did you mean model.head.num_classes'), ('mine', "no setting 'mine'")):
        with pytest.raises(UserError, match=words):
            check_variables(tmp_path / 'saved.py', ['model'], [option])


def test_a_misspelt_name_is_found_beside_the_same_in_its_base(tmp_path):
    (tmp_path / 'wrong.py').write_text('load_form = "a.pth"\n')
    (tmp_path / 'child.py').write_text("_base_ = 'wrong.py'\nload_form = 'a.pth'\n")
    with pytest.raises(UserError, match="there is no setting 'load_form'; did you mean load_from"):
        check_variables(tmp_path / 'child.py', ['load_from'])
