"""Predictions on files equal those on the test set's own samples; tokens equal the recorder's."""

import time

import mmcv
import numpy as np
import pytest
import torch
from apis.small_models import SMALL, write_image
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmpretrain.structures import DataSample
from video.written_videos import write

from vt import apis, record_attention
from vt.errors import UserError
from vt.inference.inputs import Samples, read_ahead

CLASSIFIER, SEGMENTOR, VIDEOS = SMALL


def noise(*size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


@torch.no_grad()
def predict(model, sample):
    return model.test_step(pseudo_collate([sample]))


def test_an_image_of_the_networks_size_is_classified_as_the_sample_that_it_is(small_model, tmp_path):
    config, checkpoint, model, sample = small_model(CLASSIFIER)
    image = write_image(tmp_path / 'digit.png', sample['inputs'].flip(0))  # RGB in memory
    (expected,) = predict(model, sample)
    for inferencer in (apis.ClassificationInferencer(config, checkpoint), apis.ClassificationInferencer(model)):
        for given in (str(image), mmcv.imread(image)):
            (result,) = inferencer(given)
            assert result['pred_scores'] == pytest.approx(expected.pred_score.numpy(), abs=1e-6)
            assert result['pred_class'] == str(int(expected.pred_label))


def test_classes_of_equal_scores_are_in_their_order_and_the_first_is_the_prediction(small_model):
    scores = torch.tensor([0.1, 0.2, 0.1, 0.2, 0.2, 0.1, 0.05, 0.05, 0, 0])
    prediction = DataSample().set_pred_score(scores).set_pred_label(scores.argmax())
    for number in (1, 2, 5, None):
        entries = apis.inferencer_of(small_model(CLASSIFIER)[2]).describe(prediction, number)['predictions']
        assert [entry['label'] for entry in entries] == [1, 3, 4, 0, 2, 5, 6, 7, 8, 9][:number]


def test_files_are_decoded_once_by_threads_in_their_order(tmp_path, monkeypatch):
    files = [str(tmp_path / f'{index}.jpg') for index in range(9)]
    for index, file in enumerate(files):
        mmcv.imwrite(noise(50, 70, 3, seed=index), file)
    pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=32), dict(type='PackInputs')]
    backbone = dict(type='ResNet', depth=18)
    images = Samples(Config(dict(model=dict(backbone=backbone), test_dataloader=dict(dataset=dict(pipeline=pipeline)))))
    decode, decoded = mmcv.imfrombytes, []
    monkeypatch.setattr(mmcv, 'imfrombytes', lambda *args, **options: decoded.append(0) or decode(*args, **options))
    starts = []

    def read(file):
        starts.append(file)
        time.sleep(0.05 * (file == files[1]))  # others end before it
        return images(file)

    ahead = read_ahead(read, files, workers=2, batch_size=3)
    samples = [next(ahead), next(ahead)]  # the first tells how large they are
    assert 3 <= len(starts) <= 7  # not all of them
    samples += ahead
    assert len(decoded) == len(files)
    assert [sample['data_samples'].img_path for sample in samples] == files
    for sample, file in zip(samples, files):
        assert torch.equal(sample['inputs'], images(file)['inputs'])


def test_batches_threads_and_a_single_image_change_nothing(small_model, tmp_path):
    config, checkpoint, _, sample = small_model(CLASSIFIER)
    files = [str(write_image(tmp_path / f'{index}.png', sample['inputs'].roll(index, 1))) for index in range(5)]
    inferencer = apis.inferencer_of(config, checkpoint)
    ahead, plain = (inferencer(files, batch_size=2, workers=workers) for workers in (2, 0))
    for one, other in zip(ahead, plain):
        assert np.array_equal(one['pred_scores'], other['pred_scores'])
    large = noise(50, 70, 3)
    given = [files[0], large, mmcv.imrescale(large, 2)]  # sizes that differ
    for one, source in zip(inferencer(given, batch_size=2), given, strict=True):
        assert one['pred_scores'] == pytest.approx(inferencer(source)[0]['pred_scores'], abs=1e-6)
    (alone,), (listed,) = inferencer(files[0]), inferencer(files[:1])
    assert np.array_equal(alone['pred_scores'], listed['pred_scores'])
    weight = inferencer.model.backbone.layer2[0].conv1.weight
    assert weight.is_contiguous(memory_format=torch.channels_last)


def test_a_scene_is_segmented_as_the_sample_that_it_is_and_any_other_at_its_size(small_model, tmp_path):
    config, checkpoint, model, sample = small_model(SEGMENTOR)
    image = write_image(tmp_path / 'scene.png', sample['inputs'])
    expected = predict(model, sample)[0].pred_sem_seg.data[0]
    inferencer = apis.SegmentationInferencer(config, checkpoint)
    assert np.array_equal(inferencer(str(image))['predictions'], expected)
    assert inferencer.classes[0] == 'background'
    large = noise(90, 70, 3)
    result = inferencer([large, str(image)], batch_size=2, return_vis=True)
    assert [labels.shape for labels in result['predictions']] == [(90, 70), (128, 128)]
    assert np.array_equal(result['predictions'][1], expected)
    (batch,) = inferencer.preprocess([large])
    assert inferencer.draw(inferencer.pixels(large), inferencer.forward(batch)[0]).shape == large.shape


def test_a_video_is_classified_as_the_sample_that_it_is(small_model, tmp_path):
    config, checkpoint, model, sample = small_model(VIDEOS)
    frames = [frame.permute(1, 2, 0).contiguous().numpy() for frame in sample['inputs'].unbind(1)]
    video = write(tmp_path / 'digits.avi', frames, 'FFV1', size=(32, 32))
    (expected,) = predict(model, sample)
    inferencer = apis.inferencer_of(config, checkpoint)
    (result,) = inferencer(str(video))
    assert result['pred_scores'] == pytest.approx(expected.pred_score.numpy(), abs=2e-3)  # the codec's colours round
    assert inferencer.pixels(video).shape == (32, 8 * 32, 3)
    assert inferencer.draw(inferencer.pixels(video), expected).shape == (256, 8 * 256, 3)
    longer = write(tmp_path / 'twice.avi', [frame for frame in frames for _ in range(2)], 'FFV1', size=(32, 32))
    assert inferencer([str(video), str(longer)], batch_size=2)[1]['pred_label'] in range(8)


BLACK = np.zeros((40, 40, 3), np.uint8)


@pytest.mark.parametrize(
    ('name', 'call', 'message'),
    [
        (CLASSIFIER, lambda inferencer: inferencer(BLACK, batch_size=0), 'batch_size=0 must be at least 1'),
        (CLASSIFIER, lambda inferencer: inferencer('none.png'), 'there is no image '),
        (CLASSIFIER, lambda inferencer: inferencer('text.png'), 'is not a readable image'),
        (CLASSIFIER, lambda inferencer: apis.extract_tokens(inferencer.model, BLACK), 'images is a single image'),
        (CLASSIFIER, lambda inferencer: apis.extract_tokens(inferencer.model, [BLACK / 1.0]), r'3\) and dtype float64'),
        (VIDEOS, lambda inferencer: inferencer('gone.mp4'), r'^there is no video .*gone.mp4$'),
        (VIDEOS, lambda inferencer: inferencer(BLACK), 'requires videos: pass the path of a file, not an array'),
    ],
)
def test_what_can_not_be_predicted_is_one_line(name, call, message, small_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'text.png').write_bytes(b'text')
    with pytest.raises(UserError, match=message) as error:
        call(apis.inferencer_of(small_model(name)[2]))
    assert '\n' not in str(error.value)


def test_tokens_maps_and_attention_are_the_recorders(small_model):
    *_, model, sample = small_model(CLASSIFIER)
    images = model.data_preprocessor(pseudo_collate([sample, sample]), False)['inputs']
    model.train()
    extracted = apis.extract_tokens(model, images)
    assert model.training
    with pytest.raises(RuntimeError):
        apis.extract_tokens(model, images[:, :2])
    assert model.training
    model.eval()
    with torch.no_grad(), record_attention(model) as records:
        model(images)
    assert extracted.attention.keys() == records.keys() == extracted.tokens.keys() | extracted.maps.keys()
    for name, record in records.items():
        assert torch.equal(extracted.attention[name], record.attention)
        assert torch.equal((extracted.tokens | extracted.maps)[name], record.output)
    assert extracted.tokens['backbone.layer4.0.tokenizer'].shape == (2, 4, 64)
    image = sample['inputs'].flip(0).permute(1, 2, 0).contiguous().numpy()
    again = apis.extract_tokens(model, [image, image])
    assert torch.equal(again.tokens['backbone.layer4.0.tokenizer'], extracted.tokens['backbone.layer4.0.tokenizer'])
    scenes = apis.extract_tokens(small_model(SEGMENTOR)[2], [np.zeros((60, 80, 3), np.uint8)])
    assert scenes.attention['neck.tokenizers.0'].shape == (1, 1, 3, 32, 32)
    assert scenes.maps['neck.projectors.0'].shape[-2:] == (32, 32)
