"""What a user of the package writes: checked by a type checker, not run."""

from pathlib import Path

import numpy as np
import torch
from mmengine.model import BaseModel

import vt
from vt import apis

names: list[str] = apis.list_models('vt-resnet*')
config: Path = apis.find_config(names[0])
model: BaseModel = apis.get_model('vt-resnet18_digits', pretrained='x.pth', device='cpu', head=dict(num_classes=3))
same: BaseModel = apis.get_model(config, Path('x.pth'), torch.device('cpu'))
apis.register_models()

backbone = vt.VTResNet(depth=18, num_tokens=8)
maps: tuple[torch.Tensor, ...] = backbone(torch.rand(1, 3, 64, 64))
neck: vt.VTFPN = vt.VTFPN(in_channels=[64, 128, 256, 512])
parts: tuple[type[vt.MViT], type[vt.TokenBackbone], type[vt.Digits], type[vt.LoadClips]]
parts = (vt.MViT, vt.TokenBackbone, vt.Digits, vt.LoadClips)
other: type[vt.datasets.DigitScenes] = vt.DigitScenes

with vt.record_attention(model) as records:
    attention: torch.Tensor = records['backbone.layer4.0.tokenizer'].attention
pixels = np.zeros((32, 32, 3), np.uint8)
tokens: dict[str, torch.Tensor] = apis.extract_tokens(model, [pixels, 'a.png']).tokens

inferencer = apis.ClassificationInferencer('vt-resnet18_digits', 'x.pth')
(batch,) = inferencer.preprocess([pixels], batch_size=1)
drawn: np.ndarray = inferencer.draw(inferencer.pixels(pixels), inferencer.forward(batch)[0])
segmentor = apis.SegmentationInferencer(config, 'x.pth', device='cuda')
either: apis.ClassificationInferencer | apis.SegmentationInferencer = apis.inferencer_of(model)
