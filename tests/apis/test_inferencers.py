"""Predictions on files equal those on the test set's own samples; tokens equal the recorder's."""

import time

import mmcv
import numpy as np
import pytest
import torch
from apis.small_models import make, write_image
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import Registry
from mmseg.apis import MMSegInferencer
from torch.testing import assert_close
from video.written_videos import write

from vt import apis, record_attention
from vt.errors import MissingFileError, UserError
from vt.inference.inputs import Samples, read_ahead


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some models')


@pytest.fixture(scope='module')
def classifier(folder):
    return make(folder, 'vt-resnet18-half_digits')


@pytest.fixture(scope='module')
def segmentor(folder):
    return make(folder, 'vt-fpn_r18_digit-scenes')


@pytest.fixture(scope='module')
def video_model(folder):
    return make(folder, 'mvit-tiny_moving-digits')


@torch.no_grad()
def predict(model, sample):
    return model.test_step(pseudo_collate([sample]))


def test_an_image_of_the_networks_size_is_classified_as_the_sample_that_it_is(classifier, tmp_path):
    config, checkpoint, model, sample = classifier
    image = write_image(tmp_path / 'digit.png', sample['inputs'].flip(0))  # RGB in memory
    (expected,) = predict(model, sample)
    for inferencer in (apis.ClassificationInferencer(config, checkpoint), apis.ClassificationInferencer(model)):
        for given in (str(image), mmcv.imread(image)):
            (result,) = inferencer(given)
            assert result['pred_scores'] == pytest.approx(expected.pred_score.numpy(), abs=1e-6)
            assert result['pred_class'] == str(int(expected.pred_label))
    names = apis.ClassificationInferencer(model, classes=list('abcdefghij'))
    assert names(str(image))[0]['pred_class'] == 'abcdefghij'[int(expected.pred_label)]


def test_batches_change_nothing_and_other_sizes_do(classifier, tmp_path):
    _, _, model, sample = classifier
    inferencer = apis.inferencer_of(model)
    large = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    given = [str(write_image(tmp_path / 'a.png', sample['inputs'])), large, mmcv.imrescale(large, 2)]
    together = inferencer(given, batch_size=2)
    apart = [inferencer(one)[0] for one in given]
    for one, other in zip(together, apart):
        assert one['pred_scores'] == pytest.approx(other['pred_scores'], abs=1e-6)
    height, width = inferencer.draw(inferencer.pixels(large), _predict(inferencer, large)[0]).shape[:2]
    assert (height, width) == (256, 358)  # it is enlarged, to be read


def test_mixed_precision_is_the_key_of_tests(classifier, segmentor, tmp_path):
    for config, checkpoint, model, sample in (classifier, segmentor):
        image = str(write_image(tmp_path / 'image.png', sample['inputs']))
        cfg = model.cfg.copy()
        cfg.test_cfg = dict(fp16=True)
        inferencer, dtypes = apis.inferencer_of(cfg, checkpoint), set()
        inferencer.model.backbone.register_forward_hook(lambda *call: dtypes.add(call[-1][-1].dtype))  # noqa: B023
        (found,) = _predict(inferencer, image)
        (expected,) = _predict(apis.inferencer_of(model), image)
        assert dtypes == {torch.bfloat16}
        if config == classifier[0]:
            assert_close(found.pred_score, expected.pred_score, rtol=0, atol=0.02)
            assert inferencer(image)[0]['pred_scores'].dtype == np.float32
        else:
            assert (found.pred_sem_seg.data == expected.pred_sem_seg.data).float().mean() > 0.9


def test_a_users_own_mixed_precision_stays(classifier):
    inferencer, dtypes = apis.inferencer_of(classifier[2]), set()
    handle = inferencer.model.backbone.register_forward_hook(lambda *call: dtypes.add(call[-1][-1].dtype))
    with torch.autocast('cpu', torch.bfloat16):
        (result,) = inferencer(np.zeros((32, 32, 3), np.uint8))
    handle.remove()
    assert dtypes == {torch.bfloat16}
    assert result['pred_scores'].sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize('kind', ['classifier', 'segmentor'])
def test_a_folder_may_be_a_path_and_an_empty_one_is_named(kind, request, tmp_path):
    *_, model, sample = request.getfixturevalue(kind)
    inferencer = apis.inferencer_of(model)
    with pytest.raises(UserError, match='contains no file'):
        inferencer(tmp_path)
    for name in 'ab':
        write_image(tmp_path / f'{name}.png', sample['inputs'])
    by_path, by_name = inferencer(tmp_path), inferencer(str(tmp_path))
    labels = [
        [each['pred_label'] for each in found] if kind == 'classifier' else np.stack(found['predictions'])
        for found in (by_path, by_name)
    ]
    assert len(labels[0]) == 2
    assert np.array_equal(*labels)


def test_numbers_out_of_range_are_one_line(classifier):
    inferencer, image = apis.inferencer_of(classifier[2]), np.zeros((32, 32, 3), np.uint8)
    with pytest.raises(UserError, match='batch_size=0 must be at least 1'):
        inferencer(image, batch_size=0)


def test_files_are_decoded_once_by_threads_in_their_order(tmp_path, monkeypatch):
    files = [str(tmp_path / f'{index}.jpg') for index in range(9)]
    for index, file in enumerate(files):
        mmcv.imwrite(np.random.default_rng(index).integers(0, 256, (50, 70, 3), np.uint8), file)
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


def test_a_grey_image_and_numbers_for_all_channels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (28, 28), np.uint8)
    mmcv.imwrite(pixels, str(tmp_path / 'grey.png'))
    pipeline = [dict(type='LoadImageFromFile', color_type='grayscale'), dict(type='PackInputs')]
    preprocessor = dict(type='ClsDataPreprocessor', mean=127.5, std=127.5)
    model = dict(backbone=dict(type='LeNet5', num_classes=10), data_preprocessor=preprocessor)
    samples = Samples(Config(dict(model=model, test_dataloader=dict(dataset=dict(pipeline=pipeline)))))
    assert (samples.prepared.mean, samples.prepared.std) == ((127.5,), (127.5,))
    assert np.array_equal(samples(str(tmp_path / 'grey.png'))['inputs'], pixels[None])


@pytest.mark.parametrize(('side', 'most'), [(8, 6), (8_000, 2)])
def test_of_large_samples_few_are_read_ahead(side, most):
    begun = []

    def read(source):
        begun.append(source)
        return dict(inputs=torch.zeros(1, 1, 1).expand(3, side, side), source=source)

    ahead = []
    for number, sample in enumerate(read_ahead(read, range(20), workers=4, batch_size=2), 1):
        assert sample['source'] == number - 1
        ahead.append(len(begun) - number)
    assert max(ahead) <= most
    assert len(begun) == 20


def test_threads_and_a_single_image_change_nothing(classifier, tmp_path):
    config, checkpoint, _, sample = classifier
    files = [str(write_image(tmp_path / f'{index}.png', sample['inputs'].roll(index, 1))) for index in range(5)]
    inferencer = apis.inferencer_of(config, checkpoint)
    ahead, plain = (inferencer(files, batch_size=2, workers=workers) for workers in (2, 0))
    for one, other in zip(ahead, plain):
        assert np.array_equal(one['pred_scores'], other['pred_scores'])
    (alone,), (listed,) = inferencer(files[0]), inferencer(files[:1])
    assert np.array_equal(alone['pred_scores'], listed['pred_scores'])
    weight = inferencer.model.backbone.layer2[0].conv1.weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    kept = apis.get_model(config, checkpoint)
    kept.cfg.speed = dict(channels_last=False)
    apis.inferencer_of(kept)
    assert kept.backbone.layer2[0].conv1.weight.is_contiguous()
    kept.cfg.speed = dict(nonsense=1)
    with pytest.raises(UserError, match="speed: it has no argument 'nonsense'"):
        apis.inferencer_of(kept.cfg, checkpoint)


def _predict(inferencer, *inputs):
    return [prediction for batch in inferencer.preprocess(inputs) for prediction in inferencer.forward(batch)]


def test_a_scene_is_segmented_as_the_sample_that_it_is_and_any_other_at_its_size(segmentor, tmp_path):
    config, checkpoint, model, sample = segmentor
    image = write_image(tmp_path / 'scene.png', sample['inputs'])
    expected = predict(model, sample)[0].pred_sem_seg.data[0]
    inferencer = apis.SegmentationInferencer(config, checkpoint)
    assert np.array_equal(inferencer(str(image))['predictions'], expected)
    assert inferencer.classes[0] == 'background'
    large = np.random.default_rng(0).integers(0, 256, (90, 70, 3), np.uint8)
    result = inferencer([large, str(image)], batch_size=2, return_vis=True)
    assert [labels.shape for labels in result['predictions']] == [(90, 70), (128, 128)]
    assert np.array_equal(result['predictions'][1], expected)
    assert inferencer.draw(inferencer.pixels(large), _predict(inferencer, large)[0]).shape == large.shape


def test_mmsegmentations_own_inferencer_takes_the_path_of_a_config():
    path = str(apis.find_config('vt-fpn_r50_4xb4-160k_ade20k-512x512'))
    with pytest.warns(UserWarning, match='Checkpoint is not loaded'):
        inferencer = MMSegInferencer(path, device='cpu', show_progress=False)
    labels = inferencer(np.zeros((64, 64, 3), np.uint8))['predictions']
    assert labels.shape == (64, 64)


def test_a_video_is_classified_as_the_sample_that_it_is(video_model, tmp_path):
    config, checkpoint, model, sample = video_model
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


@pytest.mark.parametrize('kind', ['classifier', 'segmentor', 'video_model'])
def test_a_model_is_resolved_read_and_built_once(kind, request, monkeypatch):
    config, checkpoint = request.getfixturevalue(kind)[:2]
    calls = []

    def count(owner, name):
        own = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **options: calls.append((name, args)) or own(*args, **options))

    for name in ('read_config', 'read', 'build_model'):
        count(apis.model_zoo, name)
    count(Registry, 'build')
    model = apis.inferencer_of(config, checkpoint).model
    built = [args[1]['type'] for name, args in calls if name == 'build']
    assert built.count(model.cfg.model.backbone.type) == 1
    assert [name for name, _ in calls if name != 'build'] == ['read_config', 'read', 'build_model']


@pytest.mark.parametrize(
    ('content', 'message'), [(None, 'there is no image '), (b'', 'is no image'), (b'text', 'is no image')]
)
def test_what_is_no_image_is_one_line(content, message, classifier, tmp_path):
    path = tmp_path / 'some.png'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        apis.ClassificationInferencer(classifier[2])(str(path))


def test_a_missing_video_and_an_array_for_videos_are_one_line(video_model, tmp_path):
    inferencer = apis.inferencer_of(video_model[2])
    with pytest.raises(MissingFileError, match=r'^there is no video .*gone.mp4$'):
        inferencer(str(tmp_path / 'gone.mp4'))
    with pytest.raises(UserError, match='the model takes videos: give the path of a file, not an array'):
        inferencer(np.zeros((32, 32, 3), np.uint8))


def test_a_checkpoint_of_another_model_is_one_line(classifier, segmentor):
    with pytest.raises(UserError, match="is not the model's: of "):
        apis.inferencer_of(segmentor[0], classifier[1])
    with pytest.raises(UserError, match='there are no published weights of '):
        apis.inferencer_of(classifier[0])


def test_tokens_maps_and_attention_are_the_recorders(classifier, segmentor):
    *_, model, sample = classifier
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
    large = np.zeros((60, 80, 3), np.uint8)
    scenes = apis.extract_tokens(segmentor[2], [large])
    assert scenes.attention['neck.tokenizers.0'].shape == (1, 1, 3, 32, 32)
    assert scenes.maps['neck.projectors.0'].shape[-2:] == (32, 32)


def test_images_that_tokens_cannot_be_of_are_one_line(classifier):
    *_, model, _ = classifier
    image = np.zeros((40, 40, 3), np.uint8)
    wrong = {
        'images is a single image': image,
        'images is empty': [],
        r'an image is \(3, 40, 40\), uint8': [image.transpose(2, 0, 1)],
        r'an image is \(40, 40, 3\), float32': [image.astype(np.float32)],
    }
    for message, images in wrong.items():
        with pytest.raises(UserError, match=message):
            apis.extract_tokens(model, images)
    with pytest.raises(UserError, match="device 'cuda:x' cannot be used"):
        apis.get_model('vt-resnet18_digits', device='cuda:x')
