"""Products timed side by side: what is written of them."""

import json

from projects.speed.products import time_pixel_products, time_products
from projects.speed.tests.module_call import call
from vt.ops.token_products import choose_token_library


def test_rates_of_both_libraries_and_the_choice():
    found = time_products([(4, 8, 16)], seconds=0.05)
    assert [(row['size'], row['kind']) for row in found['products']] == [
        ((4, 8, 16), 'inference'),
        ((4, 8, 16), 'training'),
    ]
    assert all(row['blas'] > 0 and row['onednn'] > 0 for row in found['products'])
    assert found['trial']['chosen'] == choose_token_library()


def test_pixels_and_tokens_have_a_row_a_map():
    (row,) = time_pixel_products([(6, 8)], seconds=0.05)
    assert row['size'] == (6, 8)
    assert all(row[name] > 0 for name in ('logits', 'convolution', 'sums', 'onto', 'read'))


def test_the_tool_prints_the_choice_and_writes_the_rates(tmp_path):
    result = call('products', '--largest', 256, '--seconds', 0.05, '--out', 'a.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert 'is chosen (oneDNN from 1.5x on)' in ' '.join(result.stdout.split())
    written = json.loads((tmp_path / 'a.json').read_text())
    assert [row['size'] for row in written['products']] == [[16, 256, 256]] * 2
    assert [row['size'] for row in written['pixels']] == [[100, 152], [50, 76], [25, 38]]
    assert written['device']
