"""What docstrings name as :class:`vt.models.VTResNet` becomes a link where the site has it: an extension of Griffe."""

import re
from typing import Any

import griffe

ROLE = re.compile(r':(?:class|func|meth|mod):`([\w.]+)`')


class Roles(griffe.Extension):
    """Links in place of Sphinx's roles."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Replace those of one docstring."""
        if obj.docstring:
            link = r'<autoref identifier="\1" optional><code>\1</code></autoref>'
            obj.docstring.value = ROLE.sub(link, obj.docstring.value)
