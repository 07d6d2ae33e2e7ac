"""Scaling of time with pixels and tokens: fitted exponents and figures."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from .settings import Measurement, describe_size

# Horizontal axes: attribute of a measurement, and the field of a setting that determines it.
AXES = {'pixels': 'size', 'tokens': 'tokens'}
LABELS = ('part', 'kind', 'device', 'dtype', 'memory_format', 'compile', 'batch_size', 'size', 'tokens')
TOKEN_SIDE = 'token side'
Line = tuple[list[int], list[float]]


def exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Fit ``y ~ x^exponent``: the slope of a line fitted to the logarithms; 1 is linear, 0 is constant."""
    slope = float(np.polyfit(np.log(xs), np.log(ys), 1)[0])
    return round(slope, 6) + 0.0  # avoids -0.0


def scaling_lines(measurements: Sequence[Measurement], x: str, shorten: Callable[[str], str] = str) -> dict[str, Line]:
    """Return the median seconds as a function of ``x``, ``'pixels'`` or ``'tokens'``, and those of the token side.

    Returns:
        Values of ``x`` and seconds by label, which has the model's name and all settings that differ. Lines with a
        single point are left out.
    """
    kept = [m for m in measurements if getattr(m, x) is not None]
    names = [name for name in LABELS if name != AXES[x] and len({str(getattr(m, name)) for m in kept}) > 1]
    points: dict[str, dict[int, float]] = {}
    for m in kept:
        label = ', '.join([shorten(m.model), *(_describe(name, getattr(m, name)) for name in names)])
        for line, seconds in ((label, m.seconds), (f'{label}: {TOKEN_SIDE}', m.token_side_seconds)):
            if seconds:
                points.setdefault(line, {})[getattr(m, x)] = float(np.median(seconds))
    lines = {label: dict(sorted(line.items())) for label, line in points.items() if len(line) > 1}
    return {label: (list(line), list(line.values())) for label, line in lines.items()}


def _describe(name: str, value: object) -> str:
    if name == 'size':
        return describe_size(value)
    return f'{name.replace("_", " ")} {value}' if name in ('batch_size', 'tokens', 'compile') else str(value)


def draw_lines(panel: Axes, x: str, lines: dict[str, Line]) -> None:
    """Draw the lines of :func:`scaling_lines` on logarithmic axes, with the fitted exponents."""
    for label, (xs, ys) in lines.items():
        style = '--' if label.endswith(TOKEN_SIDE) else '-'
        panel.loglog(xs, [1e3 * y for y in ys], f'o{style}', label=f'{label} (exponent {exponent(xs, ys):.2f})')
    ticks = sorted({place for xs, _ in lines.values() for place in xs})
    panel.set_xticks(ticks, [f'{tick:,}' for tick in ticks], rotation=30, ha='right')
    panel.minorticks_off()
    panel.set_xlabel(f'{x} of an image' if x == 'pixels' else f'{x} (of a level, in a neck)')
    panel.set_ylabel('ms a step, median')
    panel.grid(alpha=0.3)
    panel.legend(fontsize='small', loc='upper center', bbox_to_anchor=(0.5, -0.22))
