"""The report of a GPU, in its dry form: everything but the device."""

import json
import os
import subprocess
import sys

import pytest
from tool_runner import ROOT

PARTS = [
    'kernel-times',
    'necks_800x1216',
    'resnet18',
    'segmentors_800x1216',
    'training-digits',
    'training-scenes',
    'necks_800x1216-compiled',
    'resnet18-compiled',
]


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    """What the script printed, and its folder, in which the tests' part was there before."""
    folder = tmp_path_factory.mktemp('a report')
    (folder / 'tests_dry.json').write_text('{}')
    command = ['bash', ROOT / 'tools/gpu_report.sh', '--dry', folder]
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | dict(PYTHON=sys.executable))
    return result, folder


def test_every_part_leaves_its_file(report):
    result, folder = report
    assert result.returncode == 0, result.stdout + result.stderr
    for part in PARTS:
        assert json.loads((folder / f'{part}_dry.json').read_text()), part


def test_what_is_there_is_left_alone(report):
    result, folder = report
    assert 'tests: is there' in result.stdout
    assert (folder / 'tests_dry.json').read_text() == '{}'
