"""Tables as they are printed."""

from vt.analysis.tables import print_table


def test_brackets_of_names_are_printed(capsys):
    print_table([{'file': 'cat[small].jpg', 'class': 'a[/b]'}], title='my [folder]', notes=['of [these]'])
    printed = capsys.readouterr().out
    assert all(text in printed for text in ('cat[small].jpg', 'a[/b]', 'my [folder]', 'of [these]'))
