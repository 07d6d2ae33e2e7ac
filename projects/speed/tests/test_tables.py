"""Tables of speeds beside other libraries."""

import json
from dataclasses import fields

from docs.reports.pages import MARK, fill_places, find_place
from projects.speed import report, tables
from projects.speed.settings import BenchmarkRecord, Measurement
from projects.speed.tables import describe_mvit, describe_speeds


def test_speeds_are_beside_those_of_the_first_model(tmp_path):
    entry = dict.fromkeys([field.name for field in fields(Measurement)]) | dict(part='whole', size=[16, 224, 224])
    results = [
        entry | dict(model=model, kind=kind, batch_size=2, seconds=[9.0, factor * seconds, 0.1], peak_memory=memory)
        for kind, factor in dict(inference=1, training=4).items()
        for model, seconds, memory in [('ours', 0.5, 100), ('theirs', 0.75, 200), ('vit', 0.25, 50)]
    ]
    record = dict.fromkeys([field.name for field in fields(BenchmarkRecord)]) | dict(results=results)
    (tmp_path / 'video_cpu.json').write_text(json.dumps(record))
    first, second = describe_mvit(tmp_path)
    assert [*first.values()] == ['ours', 'theirs', '2 of 16x224x224', '4', '1.50x', '0.50x', '1', '1.50x', '0.50x']
    columns = ('compared with', 'faster, inference', 'relative memory, training')
    assert [second[column] for column in columns] == ['vit', '0.50x', '2.00x']


def test_speeds_are_ratios_to_the_public_twins(tmp_path):
    models = ('swin-tiny_16xb64-300e_in1k', 'timm:swin_tiny_patch4_window7_224', 'mmpretrain:swin-tiny_16xb64_in1k')
    entry = dict.fromkeys([field.name for field in fields(Measurement)]) | dict(
        part='whole', size=[224, 224], batch_size=1
    )
    results = [
        entry | dict(model=model, kind=kind, seconds=[9.0, seconds, 0.1], peak_memory=memory)
        for kind, factor in dict(inference=1, training=3).items()
        for model, seconds, memory in zip(models, (factor, factor * 1.5, factor * 2.0), (100, 200, 400))
    ]
    origin = dict(device='A CPU, 2 threads', versions=dict(torch='2.0'))
    record = dict.fromkeys([field.name for field in fields(BenchmarkRecord)]) | dict(results=results) | origin
    (tmp_path / 'swin-tiny_cpu.json').write_text(json.dumps(record))
    text = describe_speeds(tmp_path)
    row = [cell.strip() for cell in text.splitlines()[2].strip('|').split('|')]
    ratios = ['1.50x', '0.50x', '2.00x', '0.25x']
    assert row == ['Swin-T', '1000', *ratios, '3000', *ratios]
    assert text.endswith('\nMeasured on A CPU, 2 threads, torch 2.0.')


def test_the_committed_page_is_what_is_written():
    text = report.TABLES.read_text()
    assert fill_places(text, tables.PLACES) == text, 'python -m projects.speed.report writes it again'
    assert {find_place(mark, tables.PLACES) for mark in MARK.findall(text)} == tables.PLACES.keys()
