"""Models on Hugging Face's hub: ``save_pretrained``, ``from_pretrained`` and ``push_to_hub`` of its mixin.

This module needs the extra ``[hub]``. :func:`vt.apis.get_model` loads saved folders without it.
"""

from os import PathLike
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.model import BaseModel

from vt.errors import FileError, UserError
from vt.untrusted_text import printable

from .folders import CONFIG, WEIGHTS, save_folder
from .model_zoo import get_model

try:
    from huggingface_hub import ModelHubMixin, hf_hub_download
    from huggingface_hub.errors import HFValidationError
except ImportError as error:
    raise UserError("vt.apis.hub needs huggingface_hub: pip install 'visual-transformers[hub]'") from error

CARD = """---
{{ card_data }}
---

A model of [Visual Transformers for OpenMMLab](https://arxiv.org/abs/2006.03677). Loading it runs no code.

```python
from vt import apis
from vt.apis.hub import HubModel

model = HubModel.from_pretrained('the name of this repository, or a folder with its files').model
apis.inferencer_of(model)('image.jpg')
```
"""


class HubModel(
    ModelHubMixin,
    library_name='visual-transformers',
    paper_url='https://arxiv.org/abs/2006.03677',
    model_card_template=CARD,
    tags=['openmmlab'],
):
    """Model with the methods of the hub.

    ``save_pretrained(folder)`` writes ``config.json``, ``model.safetensors`` and, if there is none, a model card,
    ``README.md``. ``push_to_hub('user/name')`` uploads them in one commit. ``HubModel.from_pretrained`` loads a model
    from ``'user/name'`` or a folder. All take the options of :class:`huggingface_hub.ModelHubMixin`.

    Args:
        model: a classifier or segmentor.
        cfg: config of the model; None for ``model.cfg``, which :func:`vt.apis.get_model` sets.

    Attributes:
        model: the model. A loaded model gives the same predictions as the saved one, bit by bit with the same memory
            format.
    """

    def __init__(self, model: BaseModel, cfg: Config | None = None) -> None:
        self.model = model
        self.cfg = getattr(model, 'cfg', None) if cfg is None else cfg

    def _save_pretrained(self, save_directory: Path) -> None:
        save_folder(self.model, save_directory, self.cfg)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | PathLike, **options: Any) -> 'HubModel':
        """Load a model from a folder or from the hub, in evaluation mode.

        Args:
            pretrained_model_name_or_path: the folder, or ``'user/name'``.
            **options: ``device``; for a model of the hub also ``revision``, ``token``, ``cache_dir``,
                ``force_download`` and ``local_files_only``, as in :func:`huggingface_hub.hf_hub_download`.

        Raises:
            UserError: a file is missing or cannot be downloaded; the config is of another kind, or contains what
                :mod:`vt.apis.saved_types` does not list; the weights do not fit.
        """
        device = options.pop('device', None)
        folder = Path(pretrained_model_name_or_path)
        return cls(get_model(folder if folder.is_dir() else _fetch(folder.as_posix(), **options), device=device))


def _fetch(name: str, revision: str | None = None, **options: Any) -> Path:
    """Download a model to the cache of the hub, both files of one commit, and return their folder."""
    try:
        folder = Path(hf_hub_download(name, WEIGHTS, revision=revision, **options)).parent
        hf_hub_download(name, CONFIG, revision=folder.name, **options)
    except (OSError, HFValidationError) as error:
        reason = printable(' '.join(str(error).split()), 200)
        raise FileError(f'{name} is no folder, and could not be downloaded from the hub: {reason}') from error
    return folder
