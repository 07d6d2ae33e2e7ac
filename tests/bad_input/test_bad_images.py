"""Files that are no images, or not the images that a decoder takes them for."""

import mmcv
import numpy as np
import pytest
from bad_input.images import DAMAGED, GREY, MASK, MASKS, MODES, RGB, colours, encode
from bad_input.kept_run import FOLDER, SCENES, assert_refused, train


@pytest.fixture
def folder(tmp_path):
    """Four images of two classes, in ``data/images``."""
    for label in ('cat', 'dog'):
        (tmp_path / 'data/images' / label).mkdir(parents=True)
        for index in range(2):
            (tmp_path / f'data/images/{label}/{index}.png').write_bytes(encode(RGB))
    return tmp_path


@pytest.fixture
def scenes(tmp_path):
    """Two images with their masks, in ``data/images`` and ``data/masks``."""
    for name, image in (('images', RGB), ('masks', MASK)):
        (tmp_path / 'data' / name).mkdir(parents=True)
        for index in range(2):
            (tmp_path / f'data/{name}/{index}.png').write_bytes(encode(image))
    return tmp_path


PILLOW = "pipeline[0].update(imdecode_backend='pillow')"
READ_BY_BOTH = [
    (kind, settings) for kind in DAMAGED for settings in ('', PILLOW) if (kind, settings) != ('float TIFF', PILLOW)
]


@pytest.mark.parametrize(('kind', 'settings'), [*READ_BY_BOTH, ('truncated JPEG', 'workers')])
def test_a_damaged_image_is_named(kind, settings, folder, kept):
    name, content = DAMAGED[kind]
    (folder / 'data/images/dog' / name).write_bytes(content)
    config = FOLDER.replace('dataset = ', f'{settings}\ndataset = ') if 'pillow' in settings else FOLDER
    options = ['train_dataloader.num_workers=2'] if settings == 'workers' else []
    result = train(folder, config, '--work-dir', kept, options=options)
    assert_refused(result, f'data/images/dog/{name} cannot be loaded: ', kept)


@pytest.mark.parametrize('kind', MODES)
@pytest.mark.parametrize('backend', ['cv2', 'pillow'])
def test_other_modes_become_the_right_colours(kind, backend):
    """But for 16 bits with Pillow, which the check of a data set names."""
    _, content, seen = MODES[kind]
    loaded = mmcv.imfrombytes(content, backend=backend).astype(float)
    expected = colours()[..., ::-1] if seen == 'colours' else np.repeat(GREY[..., None], 3, -1)
    wrong = kind == '16-bit grey' and backend == 'pillow'
    assert (np.abs(loaded - expected).mean() < 6) != wrong


@pytest.mark.parametrize('kind', MASKS)
def test_a_bad_mask_is_named_before_training(kind, scenes, kept):
    content, message = MASKS[kind]
    (scenes / 'data/images/bad.png').write_bytes(encode(RGB))
    (scenes / 'data/masks/bad.png').write_bytes(content)
    assert_refused(train(scenes, SCENES, '--work-dir', kept), f'train data: data/masks/{message}', kept)


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('data/images/bad.png', 'data/masks/bad.png does not exist: it is the mask of data/images/bad.png'),
        ('data/masks/bad.png', None),  # a mask too many is nobody's
    ],
)
def test_a_file_without_its_twin(name, message, scenes, kept):
    (scenes / name).write_bytes(encode(RGB))
    result = train(scenes, SCENES, '--work-dir', kept if message else 'work_dir')
    if message:
        assert_refused(result, message, kept)
    else:
        assert result.returncode == 0, result.stderr


def test_folders_that_are_missing_or_empty(tmp_path, kept):
    arguments = ['--work-dir', kept]
    assert_refused(train(tmp_path, FOLDER, *arguments), 'there is no data: put it there', kept)
    (tmp_path / 'data/images/cat').mkdir(parents=True)
    assert_refused(train(tmp_path, FOLDER, *arguments), 'Found 0 files in subfolders of', kept)
    assert_refused(train(tmp_path, SCENES, *arguments), 'the train split is empty: correct train_dataloader', kept)
