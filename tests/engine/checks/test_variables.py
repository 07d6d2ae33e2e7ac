"""A variable that a base has used already, and a child sets without effect, is an error."""

import pytest

from vt.engine.config.config_files import own_words
from vt.engine.config.unread_variables import check_variables
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


def test_what_lies_between_a_base_and_its_grandchild(tmp_path):
    check(tmp_path, 'train_dataloader = dict(batch_size=4)', between='std = 3')  # what only a file between leaves over
    with pytest.raises(UserError, match=r"between\.py: there is no setting 'models'; did you mean model"):
        check(tmp_path, '', between='models = 3')
    between = "train_pipeline = [dict(type='Pack')]"
    with pytest.raises(UserError, match='between'):
        check(tmp_path, '', between=between)
    check(tmp_path, 'train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))', between=between)


def test_options(tmp_path):
    check(tmp_path, '', ['train_dataloader.batch_size', 'model.depth'])
    with pytest.raises(UserError, match='cfg-options: setting train_pipeline has no effect, because train_dataloader'):
        check(tmp_path, '', ['train_pipeline.0.size'])
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
        ('param_schedulers = []', 'param_scheduler'),
        ('load_form = "a.pth"', 'load_from'),
        ('total_epochs = 3', 'epochs'),
        ('optimizer = dict(lr=1)', 'optim_wrapper'),
        ('resume_from = "a.pth"', 'load_from and resume=True'),
        ('data_root = "a"', 'train_dataloader.dataset.data_root'),
        ('data_preprocessor = dict()', 'model.data_preprocessor'),
    ],
)
def test_names_that_nothing_reads(tmp_path, text, advice):
    readable = ['param_scheduler', 'custom_hooks', 'load_from', 'optim_wrapper', 'train_cfg', 'tta_pipeline']
    readable += ['train_dataloader']
    (tmp_path / 'base.py').write_text('total = 3\ntest_pipeline = []\n')
    path, name = tmp_path / 'child.py', text.split(' ')[0]
    path.write_text(f"_base_ = 'base.py'\n{text}\n")
    with pytest.raises(UserError, match=f"there is no setting '{name}'; did you mean {advice}"):
        check_variables(path, readable)
    path.write_text(f"_base_ = 'base.py'\n{text}\nload_from = str({name})\n")  # something reads it
    check_variables(path, readable)


def test_a_saved_config_has_all_variables(tmp_path):
    (tmp_path / 'saved.py').write_text('num_classes = 3\noptimizer = dict()\ntest_pipeline = []\nmine = 3\n')
    check_variables(tmp_path / 'saved.py', ['model', 'tta_pipeline'], ['model.depth'])
    for option, words in (('num_classes', 'did you mean num_classes'), ('mine', "no setting 'mine'")):
        with pytest.raises(UserError, match=words):
            check_variables(tmp_path / 'saved.py', ['model'], [option])
