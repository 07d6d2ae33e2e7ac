"""A few lines swap a component of a model for another's: what stands in the network then."""

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS

from projects.survey_claims.claims import CONFIGS
from projects.survey_claims.parts import TokenFuser
from projects.survey_claims.report import read_tables
from vt.apis import list_models
from vt.engine.config.check_settings import check_config
from vt.engine.config.steps import read_config
from vt.models import AbsolutePosition, ClassAttention, OnMap, RelativePositionBias, TokenizerEmbed

# Of each the part that is gone, how many there are of the new one, and what the blocks see at 224x224.
SWAPS = {
    'swin-tiny_lepe_digits': (RelativePositionBias, OnMap, 12, None),
    'pvt-small_peg_digits': (AbsolutePosition, OnMap, 4, None),
    'deit-small_tokenlearner_digits': (None, TokenizerEmbed, 1, [16, 9]),
    'cait-s24_vt-tokens_digits': (ClassAttention, TokenizerEmbed, 1, [16, 16]),
    'vit-tokenlearner_fuser_digits': (TokenizerEmbed, TokenFuser, 6, None),
}


@pytest.mark.parametrize('path', sorted(CONFIGS.glob('*.py')), ids=lambda path: path.stem)
def test_a_config_fits_its_parts_and_is_no_model_of_the_zoo(path):
    check_config(read_config(str(path)))
    assert path.stem not in list_models(ablations=True)
    rows = [str(row) for table in read_tables().values() for row in table['rows'].values()]
    assert any(f'projects/survey_claims/configs/{path.name}' in row for row in rows)


@pytest.mark.parametrize('name', SWAPS)
def test_a_swap_is_ten_lines_and_one_part(name):
    path = CONFIGS / f'{name}.py'
    assert len(path.read_text().splitlines()) <= 10
    gone, new, number, tokens = SWAPS[name]
    config = Config.fromfile(path).model.backbone.to_dict()
    with torch.device('meta'):
        backbone = MODELS.build(config)
        backbone.eval()
        parts = list(backbone.modules())
        assert gone is None or not any(isinstance(part, gone) for part in parts)
        assert sum(isinstance(part, new) for part in parts) == number
        seen = []
        for stage in backbone.stages:
            stage.blocks[0].register_forward_pre_hook(lambda block, args: seen.append(args[0].shape[1]))
        backbone(torch.zeros(1, 3, config['image_size'], config['image_size']))
    assert tokens is None or seen == tokens
