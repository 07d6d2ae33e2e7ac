"""Published weights by name: whole, with their head and their preparation of images; files are local stand-ins."""

from socketserver import TCPServer

import cv2
import mmcv
import numpy as np
import pytest
import timm
import torch
import torchvision
from apis.published_files import put_in_hub, put_in_torch_home
from checkpoints.small_models import load_part
from huggingface_hub import close_session, constants
from local_server import running
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from PIL import Image
from tool_runner import ROOT, call, succeed

import vt
from vt import apis
from vt.apis.model_zoo import resolve_config
from vt.checkpoints.formats.recognise import adapt_channels
from vt.checkpoints.loading import weights_only
from vt.checkpoints.weight_sources import read_timm
from vt.engine.config import pretrained
from vt.engine.config.pretrained import PUBLISHED, compare_preparation, find_preparation, find_weights
from vt.errors import UserError
from vt.inference.inputs import Samples
from vt.models import HuggingFaceBackbone

SWIN, SWIN_FILE = 'swin-tiny_16xb64-300e_in1k', 'swin_tiny_patch4_window7_224.ms_in1k'
RESNET, DEIT = 'resnet18_8xb32-90e_in1k', 'deit-small-distilled_16xb64-300e_in1k'
PAIRS = [
    (name, library) for name, row in PUBLISHED.items() for library, own in zip(('timm', 'torchvision'), row) if own
]
TWO_HEADS, MOBILE = f'timm:{PUBLISHED[DEIT][0]}', 'timm:mobilenetv3_small_050.lamb_in1k'
OTHERS = 'timm:convnext_atto.d2_in1k', 'timm:caformer_s18.sail_in1k', 'timm:vit_tiny_patch16_224.augreg_in21k'


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """Empty caches of the libraries, which may not fetch anything."""
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path / 'hub'))
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'torch'))
    monkeypatch.setenv('https_proxy', 'http://127.0.0.1:9')
    return tmp_path


@pytest.fixture
def photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 17, 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'photo.png'), cv2.resize(pixels, (617, 430), interpolation=cv2.INTER_CUBIC))
    return str(tmp_path / 'photo.png')


def put(caches, name, library):
    timms, torchvisions = PUBLISHED.get(name, (name.removeprefix('timm:'), None))
    if library == 'torchvision':
        return put_in_torch_home(caches / 'torch', torchvisions)
    return put_in_hub(caches / 'hub', timms)


def expected_of(reference, library, photo, name):
    """The image as the library prepares it, and its model's scores."""
    if library == 'timm':
        transform = timm.data.create_transform(**timm.data.resolve_model_data_config(reference), is_training=False)
    else:
        transform = torchvision.models.get_weight(PUBLISHED[name][1]).transforms()
    image = transform(Image.open(photo).convert('RGB'))[None]
    with torch.no_grad():
        return image, reference(image).softmax(dim=1)[0]


@pytest.mark.parametrize(
    ('name', 'library'),
    [
        *((name, 'timm') for name in (MOBILE, *OTHERS)),
        *(pytest.param(*pair, marks=() if pair[0] in (RESNET, DEIT) else pytest.mark.slow) for pair in PAIRS),
    ],
)
@torch.no_grad()
def test_a_published_classifier_prepares_and_predicts_as_the_librarys_own(name, library, caches, photo):
    reference = put(caches, name, library)
    model = apis.get_model(name, library)
    if 'k400' in name:
        clip = torch.randn(1, 3, 16, 224, 224, generator=torch.Generator().manual_seed(0))
        expected, found = reference(clip), model(clip, mode='tensor')
        assert (found - expected).abs().max() < 1e-4 * expected.abs().max()
        return
    expected, scores = expected_of(reference, library, photo, name)
    sample = pseudo_collate([Samples(model.cfg)(photo)])
    assert (model.data_preprocessor(sample, False)['inputs'] - expected).abs().max() < 1e-5
    (found,) = apis.inferencer_of(model)(photo)
    assert found['pred_scores'] == pytest.approx(scores.numpy(), rel=1e-3)
    assert found['pred_class'] == model.dataset_meta['classes'][scores.argmax()]


@pytest.mark.slow
def test_frames_are_prepared_and_classes_named_as_torchvision_does(caches):
    put(caches, 'mvit-base-16x4_k400', 'torchvision')
    model = apis.get_model('mvit-base-16x4_k400', 'torchvision')
    classes = model.dataset_meta['classes']
    assert [*classes] == sorted(classes)  # as Kinetics' list is read
    assert (len(classes), classes[0]) == (400, 'abseiling')
    frames = np.random.default_rng(0).integers(0, 256, (16, 12, 17, 3), np.uint8)
    frames = [cv2.resize(frame, (340, 240), interpolation=cv2.INTER_CUBIC) for frame in frames]
    same, pack = Samples(model.cfg).rest.transforms
    result = same(dict(img_path='', frames=frames, num_views=1, img_shape=(240, 340), ori_shape=(240, 340)))
    found = model.data_preprocessor(pseudo_collate([pack(result)]), False)['inputs']
    clip = torch.from_numpy(np.stack(frames)[..., ::-1].copy()).permute(0, 3, 1, 2)
    expected = torchvision.models.get_weight('MViT_V1_B_Weights.KINETICS400_V1').transforms()(clip)
    assert (found.squeeze() - expected).abs().max() < 2.5 / 255 / 0.225  # rounded to whole numbers of 0 to 255


@pytest.mark.parametrize(
    ('name', 'library', 'message'),
    [
        ('vt-resnet18_digits', 'timm', 'timm has no known weights for vt-resnet18_digits: it has weights for cait-s24'),
        (SWIN, 'timm', rf'timm://{SWIN_FILE} was not downloaded \(.*\): correct the name, connect to the internet'),
        (SWIN, 'hf://a/b', 'hf://a/b cannot be loaded, hf:// is not supported: download it and give its'),
        ('timm:no_such', 'timm', 'timm:no_such: timm has no published weights of this name: timm.list_pretrained'),
        ('timm:resnt18', 'timm', 'timm:resnt18: timm has no published weights of this name: did you mean resnet18 or'),
        (SWIN, 'timm://resnet18.a1_in', r'\(Invalid .*\): did you mean resnet18.a1_in1k or'),
        (TWO_HEADS, 'timm', r"the classifier of .+ must be one layer, not \('head', 'head_dist'\)"),
        (SWIN, 'timm://no_such_model', r'timm://no_such_model was not downloaded \(Unknown model \(no_such_model\)\)'),
    ],
)
def test_what_is_not_there_is_one_line(name, library, message, caches):
    with pytest.raises(UserError, match=message) as raised:
        apis.get_model(name, library)
    assert '\n' not in str(raised.value)


@pytest.mark.parametrize('fetch', [lambda: read_timm('resnet18.a1_in1k'), lambda: HuggingFaceBackbone('a/b')])
def test_a_hub_that_does_not_answer_is_asked_once(fetch, caches, monkeypatch):
    asked = []
    with running(TCPServer(('127.0.0.1', 0), lambda *request: asked.append(request))) as server:
        monkeypatch.setenv('https_proxy', f'http://127.0.0.1:{server.server_address[1]}')
        monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', False)
        close_session()  # the next one has the proxy
        with pytest.raises(UserError, match='the hub cannot be reached: '):
            fetch()
        close_session()
    assert len(asked) == 1


def test_other_weights_have_no_preparation(caches):
    for address in ('a.pth', 'timm', 'https://a.b/c.pth', 'torchvision://resnet18', 'mmcls://resnet18'):
        assert find_preparation(address) is None
    for config in (ROOT / 'configs/swin' / f'{SWIN}.py', SWIN.upper()):
        assert find_weights(resolve_config(config), 'timm') == f'timm://{SWIN_FILE}'
    with pytest.raises(UserError, match='timm has no known weights for this config'):
        find_weights(Config(dict(model=dict())), 'timm')
    torch.save(dict(meta=dict(epoch=1, iter=5)), caches / 'epoch_1.pth')
    assert find_weights(Config(dict(model=dict())), caches) == str(caches / 'epoch_1.pth')
    with pytest.raises(UserError, match='neither the folder of a saved model'):
        find_weights(Config(dict(model=dict())), ROOT)


def test_a_head_of_other_classes_is_new(caches):
    reference = put(caches, RESNET, 'timm')
    model = apis.get_model(RESNET, 'timm', head=dict(num_classes=7))
    assert torch.equal(model.backbone.conv1.weight, reference.conv1.weight)
    assert model.head.fc.bias.shape == (7,)
    assert not model.head.fc.bias.any()  # drawn as the config says
    assert 'classes' not in model.dataset_meta
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with weights_only():
        loaded = load_part(model, f'timm://{PUBLISHED[RESNET][0]}')  # as load_from does
    assert model.state_dict().keys() - loaded == {'head.fc.weight', 'head.fc.bias'}
    assert torch.equal(torch.rand(3), expected)  # timm's own start is drawn from no one else's numbers


RGB = [123.675, 116.28, 103.53]


@pytest.mark.parametrize(('number', 'mean'), [(1, [sum(RGB) / 3]), (4, [*RGB, RGB[0]]), (2, [1, 2])])
def test_other_channels_are_adapted_and_so_are_mean_and_deviation_unless_a_config_has_them(number, mean, caches):
    reference, cfg = put(caches, RESNET, 'timm'), resolve_config(RESNET)
    cfg.model.backbone.in_channels = number
    if number == 2:
        cfg.data_preprocessor = dict(num_classes=1000, mean=[1.0, 2.0], std=[3.0, 4.0], to_rgb=False)
    model = apis.get_model(cfg, 'timm')
    assert torch.equal(model.backbone.conv1.weight, adapt_channels(reference.conv1.weight, number))
    assert model.data_preprocessor.mean.flatten().tolist() == pytest.approx(mean)
    assert model.data_preprocessor.std.numel() == number
    assert not model.cfg.data_preprocessor['to_rgb']


def test_images_have_the_models_own_size(caches, monkeypatch):
    lines = []
    monkeypatch.setattr(pretrained.logger, 'info', lines.append)
    put(caches, 'deit-small_16xb64-300e_in1k', 'timm')
    model = apis.get_model('deit-small_16xb64-300e_in1k', 'timm', backbone=dict(image_size=112))
    resize, crop = model.cfg.test_dataloader.dataset.pipeline[1:3]
    assert (resize['scale'], crop['crop_size']) == (124, 112)  # 248 and 224 of the published
    said = (
        "images are preprocessed as published at the model's size, not 224x224: shorter side 124 (bicubic), centre 112"
    )
    assert said in lines[0]
    assert model(torch.zeros(1, 3, 112, 112), mode='tensor').shape == (1, 1000)
    with pytest.raises(UserError, match=r'image_size=\(112, 224\): published weights expect square images'):
        apis.get_model('deit-small_16xb64-300e_in1k', 'timm', backbone=dict(image_size=(112, 224)))


def test_another_mean_or_deviation_than_the_published_is_said(caches):
    put(caches, RESNET, 'timm')
    address = f'timm://{PUBLISHED[RESNET][0]}'
    cfg = resolve_config(RESNET)
    assert compare_preparation(cfg) == []
    for begin in (dict(load_from=address), {'model.backbone.init_cfg': dict(type='Pretrained', checkpoint=address)}):
        own = Config(cfg.to_dict())
        own.merge_from_dict(begin)
        assert compare_preparation(own) == []
        own.data_preprocessor.update(mean=[124, 116, 104], std=[127.5])
        assert compare_preparation(own) == [
            f'{address} was trained with std=[58.395, 57.12, 57.375], data_preprocessor has [127.5]: use the same'
        ]
        own.data_preprocessor.pop('mean')
        assert compare_preparation(own)[0].endswith('103.53], data_preprocessor has []: use the same')
    cfg.model.backbone.update(depth=50, style='caffe')
    cfg.load_from = 'torchvision://resnet50'
    expected = "torchvision://resnet50 has style='pytorch', the backbone has style='caffe'"
    assert compare_preparation(cfg) == [expected]
    cfg.load_from = 'https://a.b/c.pth'
    assert compare_preparation(cfg) == []


def test_any_classifier_of_timm_predicts_and_is_fine_tuned(caches, photo, monkeypatch):
    """It begins with the published weights; the saved config tests what it held out, prepared as published."""
    reference = put(caches, MOBILE, 'timm')
    scores = expected_of(reference, 'timm', photo, MOBILE)[1]
    best = apis.get_model(MOBILE, 'timm').dataset_meta['classes'][scores.argmax()]
    monkeypatch.setenv('COLUMNS', '300')
    result = succeed(call('predict.py', MOBILE, 'timm', photo, cwd=caches))
    assert (
        'images are preprocessed as published: shorter side 256 (bicubic), centre 224x224, mean 123.675, 116.28'
        in result.stdout
    )
    assert f'{best} {100 * scores.max():.1f} %' in result.stdout
    succeed(call('analysis/show_heat_maps.py', MOBILE, 'timm', photo, cwd=caches))  # without the data
    for index, digit in enumerate(vt.Digits('test', digits=(3, 8))):
        mmcv.imwrite(digit['img'], str(caches / f'images/{digit["gt_label"]}/{index}.png'))
    options = 'data_root=images', 'val_fraction=0.2', 'train_cfg.max_epochs=1', 'optim_wrapper.optimizer.lr=0.0'
    succeed(call('train.py', MOBILE, cwd=caches, options=options))
    saved = caches / 'work_dirs' / MOBILE.replace(':', '-') / f'{MOBILE.replace(":", "-")}.py'
    model = apis.get_model(saved, saved.with_name('epoch_1.pth'))
    assert model.head.fc.bias.shape == (2,)
    assert torch.equal(model.backbone.model.conv_stem.weight, reference.conv_stem.weight)
    assert model.cfg.test_dataloader.dataset == model.cfg.val_dataloader.dataset
    assert model.cfg.test_dataloader.dataset.dataset.pipeline[1].interpolation == 'bicubic'
    assert 'accuracy/top1' in succeed(call('test.py', saved, saved.with_name('epoch_1.pth'), cwd=caches)).stdout
    torch.save(timm.create_model(MOBILE.removeprefix('timm:'), num_classes=7).state_dict(), caches / 'seven.pth')
    few = 'data_root=images', 'val_fraction=0.2', 'image_size=32'
    printed = succeed(call('probe.py', MOBILE, 'seven.pth', cwd=caches, options=few)).stdout
    assert 'before the head' in printed  # whose classes do not matter
