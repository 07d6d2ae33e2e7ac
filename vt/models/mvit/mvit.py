"""Multiscale vision transformers for images and videos: model sizes, and the stages of a model.

Sources: Fan et al., Multiscale Vision Transformers, ICCV 2021 (arXiv 2104.11227), and Li et al., MViTv2, CVPR 2022
(arXiv 2112.01526).
"""

from collections.abc import Sequence

from vt.errors import UserError
from vt.models.grid import Size
from vt.models.survey.backbones.token_backbone import TokenBackbone
from vt.registry import MODELS

# MViTv2: relative positions, P(Q) added to the attention's output, channels that grow in the attention.
V2 = dict(position=None, relative=True, residual=True, pool_every_query=True, grow_in='attention')
# Channels of the first stage, and blocks of each stage (table 3; supplementary, table A.2; MViTv2, table 1).
SIZES: dict[str, dict] = {
    'base': dict(channels=96, depths=(1, 2, 11, 2)),
    'base-24': dict(channels=96, depths=(2, 3, 16, 3)),
    'base-24-wide': dict(channels=112, depths=(2, 3, 16, 3)),
    'v2-tiny': dict(channels=96, depths=(1, 2, 5, 2)) | V2,
    'v2-small': dict(channels=96, depths=(1, 2, 11, 2)) | V2,
}
IMAGE = dict(type='vt.PatchEmbed', kernel_size=7, stride=4, padding=3)
VIDEO = dict(type='vt.CubeEmbed', kernel_size=(3, 7, 7), stride=(2, 4, 4), padding=(1, 3, 3))
SEPARATE = dict(type='vt.SeparatePosition')


@MODELS.register_module()
class MViT(TokenBackbone):
    """A multiscale vision transformer: stages that downsample the grid by pooled queries and widen the channels.

    In the first version the last block of a stage already has the channels of the next stage: the maps of 'base' have
    192, 384, 768 and 768 channels, those of 'v2-small' 96, 192, 384 and 768.

    Args:
        arch: a key of :data:`SIZES`, or a dict of arguments of :func:`multiscale_stages`.
        num_frames: frames of a video during training; None for images.
        image_size: height and width during training, or one number for both.
        class_tokens: number of class tokens.
        embed: config of the embedding; by default the paper's overlapping 7x7 patches or 3x7x7 cubes.
        position, key_value_stride, adaptive, pooling, kernel, skip: as in :func:`multiscale_stages`; they override
            ``arch``.
        out_type: output of a stage, ``'class_tokens'``, ``'average'``, ``'map'`` or ``'tokens'``; the class token by
            default, or the average without class tokens.
        **backbone: other options of :class:`TokenBackbone`, such as ``out_indices``, ``drop_path_rate``, ``with_cp``.

    Raises:
        UserError: sizes that are not divisible; a wrong number of strides.
    """

    def __init__(
        self,
        arch: str | dict = 'base',
        num_frames: int | None = None,
        image_size: int | Sequence[int] = 224,
        class_tokens: int = 1,
        embed: dict | None = None,
        position: dict | str | None = 'by arch',
        key_value_stride: int | Sequence | None = None,
        adaptive: bool | None = None,
        pooling: str | None = None,
        kernel: int | str | Sequence[int] | None = None,
        skip: str | None = None,
        out_type: str | None = None,
        **backbone,
    ) -> None:
        given = dict(key_value_stride=key_value_stride, adaptive=adaptive, pooling=pooling, kernel=kernel, skip=skip)
        options = dict(SIZES[arch] if isinstance(arch, str) else arch)
        options |= {key: value for key, value in given.items() if value is not None}
        options |= {} if position == 'by arch' else dict(position=position)
        size = (image_size, image_size) if isinstance(image_size, int) else tuple(image_size)
        size = size if num_frames is None else (num_frames, *size)
        stages = multiscale_stages(sides=len(size), **options)
        stages[0] |= dict(embed=embed or (IMAGE if num_frames is None else VIDEO), class_tokens=class_tokens)
        out_type = out_type or ('class_tokens' if class_tokens else 'average')
        super().__init__(stages, image_size=size, out_type=out_type, **backbone)
        self.num_frames = num_frames


def multiscale_stages(
    sides: int,
    channels: int,
    depths: Sequence[int],
    num_heads: int = 1,
    growth: int = 2,
    query_stride: int | Sequence = 2,
    key_value_stride: int | Sequence | None = None,
    adaptive: bool = True,
    pooling: str = 'convolution',
    kernel: int | str | Sequence[int] = 3,
    position: dict | None = SEPARATE,
    relative: bool = False,
    residual: bool = False,
    pool_every_query: bool = False,
    grow_in: str = 'feed_forward',
    skip: str = 'normalised',
) -> list[dict]:
    """Return a dict of options per :class:`vt.models.survey.backbones.stage.Stage` of a multiscale vision transformer.

    A stride is one number for height and width, or a tuple with one number per side of the grid; a list has one stride
    per stage.

    Args:
        sides: number of sides of the grid, 2 for images and 3 for videos.
        channels: channels of the first stage.
        depths: number of blocks of each stage.
        num_heads: heads of the first stage.
        growth: factor on channels and heads from stage to stage.
        query_stride: stride of the queries in the first block of a stage; the first stage has 1 unless this is a list.
        key_value_stride: stride of keys and values; 8 for videos and 4 for images by default (tables 14 and A.3).
        adaptive: divide ``key_value_stride`` in each stage by the product of the query strides so far.
        pooling: ``'convolution'``, ``'max'`` or ``'average'``.
        kernel: kernel of all poolings, as in :class:`vt.models.TokenPooling` (table 15).
        position: config of the positions; None for none (table 11).
        relative: as in :class:`vt.models.PoolingAttention`.
        residual: as in :class:`vt.models.PoolingAttention`.
        pool_every_query: pool queries by a convolution also where their stride is 1.
        grow_in: as in :class:`vt.models.MultiscaleBlock` (table A.1).
        skip: as in :class:`vt.models.MultiscaleBlock` (table A.1).

    Raises:
        UserError: a wrong number of strides.
    """
    if key_value_stride is None:
        key_value_stride = 8 if sides == 3 else 4
    query_strides = _by_stage('query_stride', query_stride, len(depths), sides, first=1)
    key_strides = _by_stage('key_value_stride', key_value_stride, len(depths), sides)
    so_far, ones = (1,) * sides, (1,) * sides
    stages = []
    for index, (depth, query, key) in enumerate(zip(depths, query_strides, key_strides)):
        so_far = tuple(whole * own for whole, own in zip(so_far, query))
        if adaptive:
            key = tuple(max(1, own // whole) for own, whole in zip(key, so_far))
        widths = [channels * growth ** max(0, number) for number in (index - 1, index, index + 1)]
        pool_keys = dict(stride=key, kernel=kernel, mode=pooling)
        attend = dict(type='vt.PoolingAttention', relative=relative, residual=residual, key_value=pool_keys)
        attentions = [
            attend | dict(query=dict(stride=stride, kernel=kernel, mode=pooling))
            if pool_every_query or stride != ones
            else attend
            for stride in (query, *[ones] * (depth - 1))
        ]
        in_attention, last = grow_in == 'attention', index == len(depths) - 1
        stage = dict(type='vt.MultiscaleBlock', depth=depth, num_heads=num_heads * growth**index, attention=attentions)
        stage |= dict(channels=widths[0] if in_attention else widths[1], grow_in=grow_in, skip=skip, norm=last)
        stage['out_channels'] = [widths[1]] * depth
        if not in_attention and not last:
            stage['out_channels'][-1] = widths[2]
        stages.append(stage)
    stages[0]['position'] = position
    return stages


def _by_stage(name: str, stride: int | Sequence, stages: int, sides: int, first: int | None = None) -> list[Size]:
    """Expand a stride to one per stage and side; if one stride is given for all, the first stage gets ``first``."""
    if not isinstance(stride, list):
        stride = [stride] * stages if first is None else [first, *[stride] * (stages - 1)]
    if len(stride) != stages:
        raise UserError(f'MViT: {name}={stride} has {len(stride)} entries for {stages} stages; give one per stage')
    strides = [(1,) * (sides - 2) + (own, own) if isinstance(own, int) else tuple(own) for own in stride]
    for own in strides:
        if len(own) != sides or min(own) < 1:
            raise UserError(f'MViT: {name}={own} must have {sides} positive numbers, one per side of the grid')
    return strides
