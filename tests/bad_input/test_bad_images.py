"""Files that are no images."""

import pytest
from bad_input.images import DAMAGED
from bad_input.small_runs import FOLDER, refuse

PILLOW = FOLDER.replace('dataset = ', "pipeline[0].update(imdecode_backend='pillow')\ndataset = ", 1)
DEEP = [*((kind, FOLDER, 0) for kind in DAMAGED), ('truncated PNG', PILLOW, 0), ('truncated JPEG', FOLDER, 2)]


@pytest.mark.parametrize(('kind', 'config', 'workers'), DEEP)
def test_a_damaged_image_is_named(kind, config, workers, folder):
    name, content = DAMAGED[kind]
    (folder / 'data/images/dog' / name).write_bytes(content)
    line = refuse(folder, config, options=[f'train_dataloader.num_workers={workers}'])
    assert f'data/images/dog/{name} cannot be loaded: ' in line
