"""Checks that the parts share: a wrong size in a config is one clear line when the model is built."""

from vt.errors import UserError


def require_divisible(part: str, name: str, value: int, divisor_name: str, divisor: int) -> None:
    """Raise ``UserError`` unless both are positive and ``divisor`` divides ``value``."""
    if value < 1 or divisor < 1:
        raise UserError(f'{part}: {name}={value} and {divisor_name}={divisor} must be at least 1')
    if value % divisor:
        raise UserError(
            f'{part}: {name}={value} is not divisible by {divisor_name}={divisor}; change one of the two in the config'
        )
