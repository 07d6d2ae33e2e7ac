"""``num_classes='auto'`` in a model: the number of classes of its checkpoint or of its data."""

from collections.abc import Sequence

from mmengine.config import Config

from vt.errors import UserError
from vt.registry import dicts_in

from .config_parts import datasets_of
from .data import Data
from .reporting import in_one_line

AUTO = 'auto'


def enter_num_classes(cfg: Config, data: Data, classes: Sequence[str] | None = None) -> None:
    """Replace ``num_classes='auto'`` in the model and its preprocessor by a number, in place.

    The classes are those of a checkpoint, if given, or of the first of the data sets, inside wrappers, that can be
    read. Without names of classes there is a UserError.
    """
    places = [cfg.get('model'), cfg.get('data_preprocessor')]
    parts = [part for part in dicts_in(places) if part.get('num_classes') == AUTO]
    if not parts:
        return
    number = (cfg.model.get('head') or {}).get('num_classes')
    if not isinstance(number, int):  # else the preprocessor alone is undecided
        number = len(classes or _classes_of_data(data))
    for part in parts:
        part['num_classes'] = number


def _classes_of_data(data: Data) -> Sequence[str]:
    errors: list[Exception] = []
    for dataset in datasets_of(data.cfg):
        try:
            built = data.build(dataset)
            if not built.metainfo.get('classes'):  # of folders and tables they are known only now
                data.load(dataset)
        except Exception as error:
            errors.append(error)
            continue
        if classes := built.metainfo.get('classes'):
            return classes
    why = f' ({in_one_line(errors[0])})' if errors else ', which name none'
    raise UserError(f"num_classes='{AUTO}' is the number of classes of the data{why}; give a number")
