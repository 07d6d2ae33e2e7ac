"""The tools as commands, from any folder and without a checkout: ``python -m vt train CONFIG``, or ``vt train ...``."""

import ast
import sys
from difflib import get_close_matches
from pathlib import Path

from . import __version__
from .files import ROOT
from .hints import STARTS

USAGE = 'usage: {0} COMMAND ...      {0} COMMAND --help tells more; the first letters of a command are enough\n'


def main() -> None:
    """Run the tool that the first argument names with the other arguments, as ``python tools/NAME.py`` does."""
    start = STARTS[Path(sys.argv[0]).name == '__main__.py']
    given, *arguments = sys.argv[1:] or ['--help']
    tools = find_tools()
    if given in ('-h', '--help'):
        width = max(map(len, tools))
        print(USAGE.format(start), *(f'  {name:{width}}  {describe(path)}' for name, path in tools.items()), sep='\n')
    elif given == '--version':
        print(__version__)
    else:
        name = choose(given.replace('_', '-'), list(tools), start)
        sys.argv = [f'{start} {name}', *arguments]
        # Not runpy, which sets argv[0] to the path of the file: --help prints it as the name of the program.
        exec(compile(tools[name].read_text(encoding='utf-8'), tools[name], 'exec'), dict(__name__='__main__'))


def find_tools() -> dict[str, Path]:
    """Return the paths of the tools by the names of their commands, such as ``check-dataset``."""
    return {path.stem.replace('_', '-'): path for path in sorted((ROOT / 'tools').rglob('*.py'))}


def choose(given: str, names: list[str], start: str) -> str:
    """Return the command with a name, or the only one that begins with it; exit with an error if there is none."""
    begun = [given] if given in names else [name for name in names if name.startswith(given)]
    if len(begun) != 1:
        near = begun or get_close_matches(given, names)
        advice = f'did you mean {" or ".join(near)}? ' if near else ''
        print(f'error: there is no command {given!r}: {advice}{start} --help lists all', file=sys.stderr)
        sys.exit(1)
    return begun[0]


def describe(tool: Path) -> str:
    """Return the sentence that a tool's file begins with."""
    return (ast.get_docstring(ast.parse(tool.read_text(encoding='utf-8'))) or '').partition(': ``')[0]


if __name__ == '__main__':
    main()
