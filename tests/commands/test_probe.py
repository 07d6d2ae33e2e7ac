"""Linear probe and neighbours: features are those that the model computes; scores are the definitions'."""

import json

import numpy as np
import pytest
import torch
from mmengine.dataset import pseudo_collate
from tool_runner import ROOT, call, succeed

from vt import apis
from vt.commands.probe import HEAD, blocks_of, extract_features, score_linear, score_neighbours
from vt.inference.test_set import build_plain_training_set, build_test_set

DEIT = f"""
_base_ = '{ROOT}/configs/deit/deit-small_digits.py'
model = _base_.model
model['backbone']['stages'][0].update(channels=24, depth=3, num_heads=2)
model['head']['in_channels'] = 24
few = dict(type='RepeatDataset', times=3, dataset=dict(_base_.train_dataloader.dataset, indices=60))
train_dataloader = dict(dataset=dict(_delete_=True, **few))
test_dataloader = dict(dataset=dict(indices=30))
"""


@pytest.fixture(scope='module')
def deit(tmp_path_factory):
    """A folder with the config and the weights of a small DeiT of the digits; the model."""
    folder = tmp_path_factory.mktemp('deit')
    (folder / 'deit.py').write_text(DEIT)
    torch.manual_seed(0)
    model = apis.get_model(str(folder / 'deit.py'))
    model.init_weights()
    torch.save(dict(state_dict=model.state_dict()), folder / 'deit.pth')
    return folder, model


def test_features_are_those_of_each_block_and_of_the_head(deit):
    _, model = deit
    dataset, names = build_test_set(model.cfg), blocks_of(model)
    assert names == [f'backbone.stages.0.blocks.{index}' for index in range(3)]
    features, labels = extract_features(model, dataset, [*names, HEAD], batch_size=7)
    assert labels.tolist() == dataset.get_gt_labels().tolist()
    data = model.data_preprocessor(pseudo_collate([dataset[index] for index in range(len(dataset))]), False)
    with torch.no_grad():
        (output,) = model.extract_feat(data['inputs'])
        last = model.backbone.stages[0].norm(torch.from_numpy(features[names[-1]]))
    np.testing.assert_allclose(features[HEAD], output, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, output, rtol=1e-4, atol=1e-5)  # of the class token
    assert {values.shape for values in features.values()} == {(30, 24)}


def test_training_images_are_taken_once_and_without_augmentation(deit):
    _, model = deit
    dataset = build_plain_training_set(model.cfg)
    assert len(dataset) == 60
    assert dataset.pipeline.transforms[0].scale == (64, 64)
    assert [type(step).__name__ for step in dataset.pipeline.transforms] == ['Resize', 'PackInputs']


def test_maps_give_their_mean(small_model):
    model = small_model('vt-resnet18-half_digits')[2]
    dataset, names, outputs = build_test_set(model.cfg, indices=4), blocks_of(model), []
    assert (names[0], names[-1]) == ('backbone.layer1.0', 'backbone.layer4.1')
    data = model.data_preprocessor(pseudo_collate([*dataset]), False)
    hook = model.backbone.layer1[1].register_forward_hook(lambda part, inputs, output: outputs.append(output))
    with torch.no_grad():
        model.extract_feat(data['inputs'])
    hook.remove()
    found, _ = extract_features(model, dataset, names, batch_size=4)
    np.testing.assert_allclose(found[names[1]], outputs[0].mean((2, 3)), rtol=1e-4, atol=1e-5)


def test_every_block_is_scored(deit):
    folder, model = deit
    succeed(call('probe.py', 'deit.py', 'deit.pth', '--layers', '--neighbours', '5', '--out', 'probe', cwd=folder))
    found = json.loads((folder / 'probe/probe.json').read_text())
    assert [row['layer'] for row in found['layers']] == [*blocks_of(model), HEAD]
    assert found['layers'][0]['parameters'] == 10 * 25
    assert found['images'] == dict(train=60, test=30)


def test_neighbours_vote_by_their_cosine():
    """Against the definition, in loops."""
    generator = np.random.default_rng(0)
    train = generator.normal(size=(40, 6)), generator.integers(4, size=40)
    test = generator.normal(size=(25, 6)), generator.integers(4, size=25)
    right = 0
    for image, label in zip(*test):
        cosines = [image @ other / np.linalg.norm(image) / np.linalg.norm(other) for other in train[0]]
        votes = np.zeros(4)
        for index in np.argsort(cosines)[-7:]:
            votes[train[1][index]] += np.exp(cosines[index] / 0.07)
        right += votes.argmax() == label
    assert score_neighbours(train, test, k=7) == pytest.approx(100 * right / 25)


def test_a_linear_probe_finds_what_is_linear():
    x = np.random.default_rng(0).normal(size=(200, 5)) * [1, 10, 100, 1, 1]
    y = (x @ [1.0, 0.1, 0.01, 0, 0] > 0).astype(int)
    score, parameters = score_linear((x[:150], y[:150]), (x[150:], y[150:]), c=100.0)
    assert score >= 96
    assert parameters == 6  # of two classes one row
