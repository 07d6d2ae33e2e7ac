"""Words that readers stumble over do not occur in what users and contributors read."""

import re

from tool_runner import ROOT

PHRASES = {  # phrase: what to write instead
    'told from': 'estimated from',
    'differs from one to the next': 'varies between',
    'begins? anew': 'starts again, is initialised randomly',
    'as they lie': 'without resizing',
    'mistakes? of a person': 'user error',
    'can mend': 'user error',
    'nobody foresaw': 'unexpected',
    'who it is that': 'which',
    'thin products?': 'skinny matrix products',
    'are written down': 'are materialised',
    'who sees whom': 'attention mask',
    'keys and values see': 'key/value downsampling',
    'speaks? for': 'contribute to',
    'how loudly': 'gain',
    'says? nothing': 'has no meaning, is not informative',
    'pictures?': 'image for an input, figure for a drawing',
    'literal (equation|VT)s?': 'as published',
    'leave (it|this|them) out if you': 'skip it if you',
    'for a moment': 'briefly',
    'of half the width': 'at half width',
    'shared out': 'sharded',
    'rehears(al|als|e|ed)': 'dry run',
    '(files|file) (from|of) strangers': 'untrusted files',
    'labels? (that )?means? other classes': 'class indices that differ',
    'weights that load in part': 'partly loaded weights',
    'is told by': 'is described in',
    'to whoever (trains|loads|has|makes)': 'a title that names the topic',
    'the model is none': 'is not a model of',
    'beside it stand': 'are included',
    'what was found': 'results',
    'look at tokens': 'explorer',
    'on the real thing': 'on real ones',
    "needn't be here": 'are not needed',
    'of_normed|class_alone|enter_options|OwnRunner|PassOn|KeepMap': 'the names in docs/architecture.md',
}


def test_no_such_phrase_occurs():
    """But in the changelog, which has the names of before."""
    pattern = re.compile(rf'\b({"|".join(PHRASES)})\b', re.IGNORECASE)
    paths = [path for folder in ('vt', 'tools', 'configs', 'docs', 'projects') for path in (ROOT / folder).rglob('*')]
    paths += [path for path in ROOT.glob('*.md') if path.name != 'CHANGELOG.md']
    texts = [path for path in paths if path.suffix in ('.py', '.md', '.j2', '.yml', '.sh')]
    assert len(texts) > 500
    found = [
        f'{path.relative_to(ROOT)}:{number}: {match[0]}'
        for path in texts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in pattern.finditer(line)
    ]
    assert not found, f'write instead {PHRASES}'
