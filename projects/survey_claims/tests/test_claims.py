"""Claims of the survey: what measures them."""

import json

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch.nn.functional import cross_entropy

from docs.reports.pages import MARK, fill_places, find_place
from projects.survey_claims import claims, report
from projects.survey_claims.claims import CONFIGS, TOKENS, describe_claims, explain_places, measure_tokens
from projects.survey_claims.parts import LabelledTokensHead


@pytest.fixture(autouse=True)
def scope():
    """As in a new process, whatever ran before in this one."""
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        yield


def test_places_are_told_by_what_differs_with_them():
    torch.manual_seed(0)
    rows, columns = torch.meshgrid(torch.arange(5.0), torch.arange(7.0), indexing='ij')
    noise = torch.randn(60, 3, 5, 7)
    told = torch.stack([rows + columns, rows - columns, 0 * rows]).expand(60, -1, -1, -1)
    assert explain_places(told + 0.01 * noise) > 0.999
    assert explain_places(torch.cat([rows.expand(60, 1, -1, -1), noise], dim=1)) == pytest.approx(1 / 3, abs=0.05)
    assert explain_places(noise) < 0.01
    assert explain_places(noise[..., :1, :1].expand(-1, -1, 5, 7)) == pytest.approx(0, abs=1e-9)


def test_labels_teach_two_class_tokens():
    torch.manual_seed(0)
    head = LabelledTokensHead(5, 8, loss=dict(type='CrossEntropyLoss')).train()
    tokens, labels = torch.randn(2, 4, 8), torch.tensor([0, 3, 1, 4])
    losses = head.loss(((tokens[0], tokens[1]),), [DataSample().set_gt_label(label) for label in labels])
    each = [
        cross_entropy(head.label_logits((tokens,)), labels),
        cross_entropy(head.distillation_logits((tokens,)), labels),
    ]
    torch.testing.assert_close(losses['loss'], sum(each) / 2)
    head.eval()
    torch.testing.assert_close(head((tokens,)), (head.fc(tokens[0]) + head.fc_distillation(tokens[1])) / 2)


def test_cosines_are_those_of_the_checkpoint(tmp_path):
    config = Config.fromfile(CONFIGS / f'{TOKENS[0]}.py')
    torch.manual_seed(0)
    model = MODELS.build(config.model)
    stage = model.backbone.stages[0]
    with torch.no_grad():
        stage.class_tokens[0, 1] = -2 * stage.class_tokens[0, 0]
        stage.position.vectors.zero_()
        stage.norm.weight.zero_()  # what leaves is the same of all tokens
        stage.norm.bias.fill_(1)
    folder = tmp_path / f'{TOKENS[0]}_seed-0'
    folder.mkdir()
    torch.save(model.state_dict(), folder / claims.LAST)
    ((cosines,),) = measure_tokens(tmp_path).values()
    assert cosines == pytest.approx(dict(learned=-1, outputs=1), abs=1e-5)


def test_what_is_not_trained_is_said(tmp_path):
    rows = describe_claims(records=tmp_path / 'none.json')
    untrained = [row['claim'] for row in rows if row['result'].startswith('Not trained yet')]
    assert len(untrained) == 4
    assert all(
        (claims.FOLDER / link.split(')')[0]).is_file() for row in rows for link in row['tested by'].split('](')[1:]
    )


def record(label, seed, score):
    costs = dict(flops=1, parameters=1, length='1 epochs', config=f'configs/{label}.py', options={})
    return dict(label=label, seed=seed, metrics={'accuracy/top1': score}) | costs


@pytest.mark.parametrize(
    ('hard', 'soft', 'plain', 'verdict'),
    [
        ((97, 97.1, 97.2), (95, 95.1, 95.2), (93, 93.1, 93.2), 'holds'),
        ((95, 95.1, 95.2), (95, 95.2, 95.1), (93, 93.1, 93.2), 'no clear difference at this scale'),
        ((95, 95.1, 95.2), (97, 97.1, 97.2), (93, 93.1, 93.2), 'does not hold here'),
    ],
)
def test_a_claim_holds_where_every_step_does(tmp_path, hard, soft, plain, verdict):
    runs = [
        record(f'deit-mini_{name}digits', seed, score)
        for name, scores in {'hard_': hard, 'soft_': soft, '': plain}.items()
        for seed, score in enumerate(scores)
    ]
    (tmp_path / 'runs.json').write_text(json.dumps(runs))
    (row,) = [row for row in describe_claims(records=tmp_path / 'runs.json') if row['source'] == 'DeiT, table 3']
    assert row['verdict'] == verdict
    assert row['result'].startswith(f'`deit-mini_hard_digits` {sum(hard) / 3:.2f}; ')
    assert row['result'].endswith('seeds 0, 1, 2')


def test_a_claim_of_cosines_holds_where_all_seeds_say_so(tmp_path):
    measures = json.loads(claims.MEASURES.read_text())
    alike, apart = dict(learned=0.9, outputs=0.999), dict(learned=0.06, outputs=0.93)
    measures['tokens'] = {TOKENS[0]: [alike, apart], TOKENS[1]: [apart, apart]}
    (tmp_path / 'measured.json').write_text(json.dumps(measures))
    runs = [record(label, 0, 90.0) for label in TOKENS]
    (tmp_path / 'runs.json').write_text(json.dumps(runs))
    first, second, *_ = describe_claims(tmp_path / 'measured.json', tmp_path / 'runs.json')
    assert first['verdict'] == 'does not hold here'
    assert second['verdict'] == 'holds'
    assert first['result'] == 'parameters 0.900, 0.060; outputs 0.999, 0.930; top-1 90.00'


def test_the_committed_page_is_what_is_written():
    text = report.PAGE.read_text()
    assert fill_places(text, report.PLACES) == text, 'python -m projects.survey_claims.report writes it again'
    assert {find_place(mark, report.PLACES) for mark in MARK.findall(text)} == report.PLACES.keys()
