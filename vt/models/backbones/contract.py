"""Checks of the contract of token parts when a backbone is built: class tokens and messengers that parts need."""

from torch import nn

from vt.errors import UserError

from ..grid import TokenPart
from .stage import SameTokens


def check_contract(stages: nn.ModuleList, out_type: str) -> None:
    """Check that each part, and the output, support the class tokens and messengers of their stage.

    Args:
        stages: stages of a :class:`TokenBackbone`.
        out_type: its output type.

    Raises:
        UserError: a part or the output does not support the tokens of its stage, or needs tokens that are missing.
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
    """Check a part for ``number`` class tokens; ``stage_has`` starts the message. Raises as :func:`check_contract`."""
    name, needed = type(part).__name__, part.num_class_tokens_needed
    if number and not part.takes_class_tokens:
        raise UserError(
            f'{stage_has} class tokens, which {name} does not support; set class_tokens=0 for this stage, or remove '
            f'{name}'
        )
    if part.needs_messengers and not has_messengers:
        raise UserError(f'{stage_has} no messengers, which {name} needs; set embed of the stage to vt.MessengerEmbed')
    if needed is not None and number != needed:
        raise UserError(
            f'{stage_has} {number} class tokens, but {name} needs {needed}; set class_tokens={needed} for this stage'
        )
