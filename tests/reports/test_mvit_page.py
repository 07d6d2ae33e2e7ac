"""The page of multiscale vision transformers: its tables of speeds."""

import json
from dataclasses import fields

from docs.reports.mvit import describe_decoders, describe_speeds
from vt.analysis.speed.measurement import BenchmarkRecord, Measurement


def test_speeds_are_beside_those_of_the_first_model(tmp_path):
    entry = dict.fromkeys([field.name for field in fields(Measurement)]) | dict(part='whole', size=[16, 224, 224])
    results = [
        entry | dict(model=model, kind=kind, batch_size=2, seconds=[9.0, factor * seconds, 0.1], peak_memory=memory)
        for kind, factor in dict(inference=1, training=4).items()
        for model, seconds, memory in [('ours', 0.5, 100), ('theirs', 0.75, 200), ('vit', 0.25, 50)]
    ]
    record = dict.fromkeys([field.name for field in fields(BenchmarkRecord)]) | dict(results=results)
    (tmp_path / 'video_cpu.json').write_text(json.dumps(record))
    first, second = describe_speeds(tmp_path)
    assert [*first.values()] == ['ours', 'theirs', '2 of 16x224x224', '4', '1.50x', '0.50x', '1', '1.50x', '0.50x']
    columns = ('compared with', 'faster, inference', 'relative memory, training')
    assert [second[column] for column in columns] == ['vit', '0.50x', '2.00x']


def test_decoders_are_beside_each_other(tmp_path):
    for column, factor in dict(decoding=1, training=0.5).items():
        results = [
            dict(decoder=decoder, workers=workers, clips_per_second=factor * workers * rate)
            for decoder, rate in dict(opencv=20, pyav=30).items()
            for workers in (1, 2)
        ]
        (tmp_path / f'video_{column}_cpu.json').write_text(json.dumps(dict(results=results)))
    first, second = describe_decoders(tmp_path).to_dict('records')
    assert [*first] == [
        'decoder',
        'decoding, 1 worker',
        'decoding, 2 workers',
        'training, 1 worker',
        'training, 2 workers',
    ]
    assert [*first.values()] == ['opencv', '20', '40', '10', '20']
    assert [*second.values()] == ['pyav', '30', '60', '15', '30']
