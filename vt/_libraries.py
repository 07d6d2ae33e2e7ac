"""Import OpenMMLab's packages once, without the greetings that a user of VT can't act on.

Their first import prints which optional packages are absent and warns that mmcv has no compiled operators. VT uses
none of them.
"""

import contextlib
import io
import warnings

with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
    warnings.simplefilter('ignore')
    import mmpretrain.datasets
    import mmpretrain.models  # noqa: F401
    import mmseg.datasets
    import mmseg.models  # noqa: F401
