"""The contract of token parts, checked when a backbone is built: class tokens and messengers where parts want them."""

from torch import nn

from vt.errors import UserError

from ..grid import TokenPart
from .stage import SameTokens


def check_contract(stages: nn.ModuleList, out_type: str) -> None:
    """Class tokens are where parts and the output want them, and nowhere else.

    Raises:
        UserError: a part or the output has no place for the tokens that a stage has, or misses them; which one is told.
    """
    number, has_messengers = 0, False
    for index, stage in enumerate(stages):
        own = 0 if stage.class_tokens is None else stage.class_tokens.shape[1]
        if isinstance(stage.embed, SameTokens):
            number += own
        else:
            number, has_messengers = own, stage.embed.gives_messengers
        for part in stage.modules():
            if isinstance(part, TokenPart):
                check_part(part, f'TokenBackbone: stage {index} has', number, has_messengers)
    if out_type == 'messengers' and not has_messengers:
        raise UserError("TokenBackbone: out_type='messengers', but the last stage has no messengers")
    if out_type in ('class_tokens', 'layers') and not number:
        raise UserError(f'TokenBackbone: out_type={out_type!r}, but the last stage has no class token')


def check_part(part: TokenPart, stage_has: str, number: int, has_messengers: bool) -> None:
    """Raise ``UserError`` unless a part goes with so many class tokens, and with messengers or none."""
    name, needed = type(part).__name__, part.num_class_tokens_needed
    if number and not part.takes_class_tokens:
        raise UserError(
            f'{stage_has} class tokens, and {name} has no place for them; set class_tokens=0 there, or leave that part '
            'out'
        )
    if part.needs_messengers and not has_messengers:
        raise UserError(f'{stage_has} no messengers, which {name} needs; give it an embed of vt.MessengerEmbed')
    if needed is not None and number != needed:
        raise UserError(
            f'{stage_has} {number} class tokens, and {name} wants {needed}; set class_tokens={needed} there'
        )
