"""Whether the parts of a backbone and its class tokens go together, asked when it is built."""

from torch import nn

from vt.errors import UserError

from ..attentions import ClassAttention


def check_class_tokens(stages: nn.ModuleList, out_type: str) -> None:
    """Class tokens are where parts and the output want them, and nowhere else.

    Raises:
        UserError: a part or the output has no place for the tokens that a stage has, or misses them; which one is told.
    """
    number, has_messengers = 0, False
    for index, stage in enumerate(stages):
        if stage.embed is not None:
            has_messengers = getattr(stage.embed, 'gives_messengers', False)
        own = 0 if stage.class_tokens is None else stage.class_tokens.shape[1]
        number = own if stage.embed is not None else number + own
        for part in stage.modules():
            if number and not getattr(part, 'takes_class_tokens', True):
                raise UserError(
                    f'TokenBackbone: stage {index} has class tokens, and {type(part).__name__} has no place for '
                    'them; set class_tokens=0 there, or leave that part out'
                )
            if getattr(part, 'needs_messengers', False) and not has_messengers:
                raise UserError(
                    f'TokenBackbone: stage {index} has no messengers, which {type(part).__name__} needs; give it '
                    'an embed of vt.MessengerEmbed'
                )
            if isinstance(part, ClassAttention) and number != 1:
                raise UserError(
                    f'TokenBackbone: stage {index} has {number} class tokens, and ClassAttention wants one; set '
                    'class_tokens=1 there'
                )
    if out_type == 'messengers' and not getattr(stages[-1].embed, 'gives_messengers', False):
        raise UserError("TokenBackbone: out_type='messengers', but the last stage has no messengers")
    if out_type in ('class_tokens', 'layers') and not number:
        raise UserError(f'TokenBackbone: out_type={out_type!r}, but the last stage has no class token')
