"""Files that are no images."""

import mmcv
import numpy as np
import pytest
from bad_input.images import DAMAGED, GREY, RGB, colours, encode
from bad_input.small_runs import FOLDER, refuse
from PIL import Image

PILLOW = FOLDER.replace('dataset = ', "pipeline[0].update(imdecode_backend='pillow')\ndataset = ", 1)
DEEP = [('text named .jpg', FOLDER, 0), ('truncated PNG', PILLOW, 0), ('truncated JPEG', FOLDER, 2)]


@pytest.mark.parametrize(('kind', 'config', 'workers'), DEEP)
def test_a_damaged_image_is_named(kind, config, workers, folder):
    name, content = DAMAGED[kind]
    (folder / 'data/images/dog' / name).write_bytes(content)
    line = refuse(folder, config, options=[f'train_dataloader.num_workers={workers}'])
    assert f'data/images/dog/{name} cannot be loaded: ' in line


@pytest.mark.parametrize('backend', ['cv2', 'pillow'])
def test_other_modes_become_the_right_colours(backend):
    """But for 16 bits with Pillow, which the check of a data set names."""
    coloured = [encode(RGB.convert('CMYK'), 'JPEG', quality=95), encode(RGB.convert('CMYK'), 'TIFF')]
    coloured += [encode(RGB.convert('P', palette=Image.Palette.ADAPTIVE)), encode(RGB.convert('RGBA'))]
    grey = [encode(GREY), encode(RGB.convert('LA')), encode(GREY.astype(np.uint16) * 257)]
    cases = [(content, colours()[..., ::-1]) for content in coloured]
    cases += [(content, np.repeat(GREY[..., None], 3, -1)) for content in grey]
    found = [
        np.abs(mmcv.imfrombytes(content, backend=backend) - seen.astype(float)).mean() < 6 for content, seen in cases
    ]
    assert found == [True] * 6 + [backend == 'cv2']
