"""Parts of a GPU's report that end their process, hang, fail, or work."""

import os
import time


def dies(rows):
    rows.add(lambda row: row.update(number=1), name='before')
    os._exit(3)


def hangs(rows):
    time.sleep(3600)


def fails(rows):
    rows.add(lambda row: row.update(number=1 / 0), name='a quotient')
    rows.add(lambda row: row.update(number=2), name='a number')


def lasts(rows):
    rows.add(lambda row: time.sleep(max(0, rows.until - time.monotonic())), name='a long one')
    rows.add(lambda row: row.update(number=2), name='a late one')
