"""What PyTorch says when processes can't meet or wait in vain, in words that a user can act on."""

import os
import re

# What a message holds, and what to say instead.
EXPLANATIONS = (
    (
        r'EADDRINUSE|[Aa]ddress already in use',
        'port {port} is in use: set PORT (MASTER_PORT without tools/dist_*.sh) to a free one',
    ),
    (
        r'Connection (?:closed|reset) by peer|Broken pipe|Connection was likely closed|remote server shutdown',
        'stopped because another process failed: its own line says why',
    ),
    (
        r'Timed out waiting \d+ ?ms for (?:recv|send)|[Ww]atchdog caught collective operation timeout',
        'another process did not answer in time: look at its log (*_rank*.log in the work directory); '
        'env_cfg.dist_cfg.timeout sets the seconds to wait',
    ),
    (
        r'client socket has timed out|Connection refused|failed to connect',
        'no main process answers at {address}:{port}: start all processes within its timeout, with one MASTER_ADDR '
        'and one PORT (MASTER_PORT without tools/dist_*.sh)',
    ),
    (
        r'Expected to have finished reduction in the prior iteration',
        'some parameters took no part in the loss: add --cfg-options find_unused_parameters=True',
    ),
)


def describe_distributed(message: str) -> str | None:
    """What to do about an error of ``torch.distributed``; None for a message of anything else.

    Args:
        message: the error's text.
    """
    port = re.search(r'port: (\d+)', message)
    place = dict(
        address=os.environ.get('MASTER_ADDR', 'MASTER_ADDR'),
        port=port[1] if port else os.environ.get('MASTER_PORT', 'MASTER_PORT'),
    )
    for pattern, explanation in EXPLANATIONS:
        if re.search(pattern, message):
            return explanation.format(**place)
    return None
