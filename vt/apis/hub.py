"""Models as Hugging Face's hub has them: ``save_pretrained``, ``from_pretrained``, ``push_to_hub`` by its own mixin.

It needs the extra ``[hub]``; a saved folder is read without it, by :func:`vt.apis.get_model`.
"""

from os import PathLike
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.model import BaseModel

from vt.engine.launch import is_segmentation
from vt.errors import FileError, UserError
from vt.untrusted_text import printable

from .folders import CONFIG, WEIGHTS, save_folder
from .model_zoo import get_model

try:
    from huggingface_hub import ModelCard, ModelHubMixin, hf_hub_download
    from huggingface_hub.errors import HFValidationError
except ImportError as error:
    raise UserError("vt.apis.hub needs huggingface_hub: pip install 'visual-transformers[hub]'") from error

CARD = """---
{{ card_data }}
---

A model of [Visual Transformers for OpenMMLab](https://arxiv.org/abs/2006.03677), of the distribution
`visual-transformers`. `config.json` holds known parts with plain arguments, and the weights are safetensors: nothing of
them is run.

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
    """A model with the hub's methods; none is added to the libraries' classes.

    ``save_pretrained(folder)`` writes ``config.json``, ``model.safetensors`` and a card, ``README.md``, if there is
    none; ``push_to_hub('user/name')`` uploads them in one commit; ``HubModel.from_pretrained('user/name')``, or with a
    folder, reads them again. All take the options of :class:`huggingface_hub.ModelHubMixin`.

    Args:
        model: a classifier or segmentor.
        cfg: its config; None for ``model.cfg``, which :func:`vt.apis.get_model` leaves with it.

    Attributes:
        model: it predicts what the model that was saved predicts, bit for bit where its weights lie in memory alike.
    """

    def __init__(self, model: BaseModel, cfg: Config | None = None) -> None:
        self.model = model
        self.cfg = getattr(model, 'cfg', None) if cfg is None else cfg

    def save_pretrained(self, save_directory: str | PathLike, **options: Any) -> str | None:
        """Write the model to a folder; options as the mixin's.

        Raises:
            UserError: the model has no config, or one that is no data; the folder can't be written to.
        """
        try:
            return super().save_pretrained(save_directory, **options)
        except FileError:
            raise
        except OSError as error:
            advice = 'correct its permissions, or choose another folder'
            raise FileError(f'{save_directory} could not be written ({error.strerror or error}): {advice}') from error

    def _save_pretrained(self, save_directory: Path) -> None:
        save_folder(self.model, save_directory, self.cfg)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | PathLike, **options: Any) -> 'HubModel':
        """Read a model from a folder, or else fetch it from the hub; it is in evaluation mode.

        Args:
            pretrained_model_name_or_path: the folder, or ``'user/name'``.
            **options: ``device``; of a model of the hub also ``revision``, ``token``, ``cache_dir``, ``force_download``
                and ``local_files_only``, as of :func:`huggingface_hub.hf_hub_download`.

        Raises:
            UserError: a file is missing or can't be fetched; the config is none of ours, or names what is not
                registered; the weights don't fit.
        """
        device = options.pop('device', None)
        folder = Path(pretrained_model_name_or_path)
        return cls(get_model(folder if folder.is_dir() else _fetch(folder.as_posix(), **options), device=device))

    def generate_model_card(self, *args: Any, **options: Any) -> ModelCard:
        """The card, with the model's task."""
        card = super().generate_model_card(*args, **options)
        card.data.pipeline_tag = 'image-segmentation' if is_segmentation(self.cfg) else 'image-classification'
        return card


def _fetch(name: str, revision: str | None = None, **options: Any) -> Path:
    """The folder of a model of the hub, in the hub's cache; both files are of one commit."""
    try:
        folder = Path(hf_hub_download(name, WEIGHTS, revision=revision, **options)).parent
        hf_hub_download(name, CONFIG, revision=folder.name, **options)
    except (OSError, HFValidationError) as error:
        reason = printable(' '.join(str(error).split()), 200)
        raise FileError(f'there is no folder {name}, and it was not fetched from the hub: {reason}') from error
    return folder
