"""Files that are no images, or not the images that a decoder takes them for."""

import mmcv
import numpy as np
import pytest
from bad_input.images import DAMAGED, GREY, MODES, colours
from bad_input.small_runs import FOLDER, refuse

PILLOW = FOLDER.replace('dataset = ', "pipeline[0].update(imdecode_backend='pillow')\ndataset = ", 1)
DEEP = [*((kind, FOLDER, 0) for kind in DAMAGED), ('truncated PNG', PILLOW, 0), ('truncated JPEG', FOLDER, 2)]


@pytest.mark.parametrize(('kind', 'config', 'workers'), DEEP)
def test_a_damaged_image_is_named(kind, config, workers, folder):
    name, content = DAMAGED[kind]
    (folder / 'data/images/dog' / name).write_bytes(content)
    line = refuse(folder, config, options=[f'train_dataloader.num_workers={workers}'])
    assert f'data/images/dog/{name} cannot be loaded: ' in line


@pytest.mark.parametrize('kind', MODES)
@pytest.mark.parametrize('backend', ['cv2', 'pillow'])
def test_other_modes_become_the_right_colours(kind, backend):
    """But for 16 bits with Pillow, which the check of a data set names."""
    _, content, seen = MODES[kind]
    loaded = mmcv.imfrombytes(content, backend=backend).astype(float)
    expected = colours()[..., ::-1] if seen == 'colours' else np.repeat(GREY[..., None], 3, -1)
    wrong = kind == '16-bit grey' and backend == 'pillow'
    assert (np.abs(loaded - expected).mean() < 6) != wrong
