"""Types of the parts that a saved model may contain, and the strings that their arguments take."""

import re
from typing import Any

WORD = re.compile(r'(?!_)[\w+.-]{1,64}')  # a name: no path, address, expression, or key of mmengine
RESIZINGS = ('nearest', 'bilinear', 'bicubic', 'area', 'lanczos')
# Names of types by scope. No wrapper of another library is among them: timm and transformers
# fetch, and open the files that their arguments name.
TYPES = dict(
    vt="""
        AbsolutePosition Attention Block ClassAttention ClipPreprocessor ClusteringTokenizer ContinuousPositionBias
        ConvolutionalEmbed CosineAttention CubeEmbed DistillationTokenHead DropoutLinearClsHead DynamicTokenizer
        EfficientAttention FeedForward FilterTokenizer FrozenBackbone GraphConvolution HRFormer HadamardAttention
        HeadMixing LargeImageSegmentor LayerwiseClassAttention MViT MessengerBias MessengerBlock MessengerEmbed
        MessengerMerging MessengerWindows MultiscaleBlock NormalCell OnMap PEG ParallelAttention PatchEmbed PatchMerging
        PerformerAttention PoolingAttention PoolingReduction PoolingTokenizer PositionEncoder PostNormBlock
        ProgressiveSampling Projector PyramidReduction RecurrentTokenizer ReducedAttention ReductionCell
        RelativePositionBias ScaleFusion SegBandsPreProcessor SeparatePosition SimplePyramid SinusoidalPosition
        SoftSplit SparseAttention SqueezeExcite StridedReduction StripeAttention TalkingHeadsAttention TokenAverage
        TokenBackbone TokenBatchNorm TokenEncoder TokenFuser TokenLabelHead TokenLearner TokenPooling TokenTransformer
        TokenizedBlock TokenizerEmbed VTBackbone VTFPN VTModule VTResNet VTResNetAnywhere VTResNetCIFAR ValueTransformer
        VideoClassifier WindowAttention Windows
    """,
    mmpretrain="""
        AlexNet BEiTViT CSPDarkNet CSPResNeXt CSPResNet Conformer ConvMixer ConvNeXt DaViT DeiT3 DenseNet
        DistilledVisionTransformer EdgeNeXt EfficientFormer EfficientNet EfficientNetV2 HRNet HiViT HorNet InceptionV3
        LeNet5 LeViT MViT MixMIMTransformer MlpMixer MobileNetV2 MobileNetV3 MobileOne MobileViT PCPVT PoolFormer
        PyramidVig RIFormer RegNet RepLKNet RepMLPNet RepVGG Res2Net ResNeSt ResNeXt ResNet ResNetV1c ResNetV1d
        ResNet_CIFAR RevVisionTransformer SEResNeXt SEResNet SVT ShuffleNetV1 ShuffleNetV2 SwinTransformer
        SwinTransformerV2 T2T_ViT TNT TinyViT VAN VGG ViTEVA02 ViTSAM Vig VisionTransformer XCiT
        ClsBatchNormNeck GeneralizedMeanPooling GlobalAveragePooling HRFuseScales LinearNeck
        CSRAClsHead ClsHead ConformerHead DeiTClsHead EfficientFormerClsHead LeViTClsHead LinearClsHead
        MultiLabelClsHead MultiLabelLinearClsHead StackedLinearClsHead VigClsHead VisionTransformerClsHead
        AsymmetricLoss CrossEntropyLoss FocalLoss LabelSmoothLoss SeesawLoss
        ClsDataPreprocessor GRN ImageClassifier LN2d ShiftWindowMSA
    """,
    mmseg="""
        BEiT BiSeNetV1 BiSeNetV2 CGNet DDRNet DeconvModule ERFNet FastSCNN HRNet ICNet InterpConv MAE MSCAN
        MixVisionTransformer MobileNetV2 MobileNetV3 PCPVT PIDNet ResNeSt ResNeXt ResNet ResNetV1c ResNetV1d
        STDCContextPathNet STDCNet SVT SwinTransformer UNet VisionTransformer
        FPN Feature2Pyramid ICNeck JPU MLANeck MultiLevelNeck
        ANNHead APCHead ASPPHead CCHead DAHead DDRHead DMHead DNLHead DPTHead DepthwiseSeparableASPPHead
        DepthwiseSeparableFCNHead EMAHead EncHead FCNHead FPNHead GCHead ISAHead IterativeDecodeHead KernelUpdateHead
        KernelUpdator LRASPPHead LightHamHead NLHead OCRHead PIDHead PSAHead PSPHead PointHead SETRMLAHead SETRUPHead
        STDCHead SegformerHead SegmenterMaskTransformerHead UPerHead
        BoundaryLoss CrossEntropyLoss DiceLoss FocalLoss LovaszLoss OhemCrossEntropy TverskyLoss
        CascadeEncoderDecoder EncoderDecoder SegDataPreProcessor
    """,
    mmengine="""
        BN BN1d BN2d BN3d GN IN IN1d IN2d IN3d LN SyncBN
        Clamp Clip ELU GELU HSigmoid HSwish LeakyReLU PReLU RReLU ReLU ReLU6 SiLU Sigmoid Swish Tanh
        Conv Conv1d Conv2d Conv2dAdaptivePadding Conv3d ConvAWS ConvModule ConvTranspose2d ConvTranspose3d ConvWS deconv
        deconv3d reflect replicate zero bilinear nearest DropPath Dropout
        BaseTransformerLayer ContextBlock FFN GeneralizedAttention MultiheadAttention NonLocal2d
        TransformerLayerSequence BaseDataPreprocessor ImgDataPreprocessor
    """,
)
OUTPUTS = ('class_tokens', 'average', 'map', 'tokens', 'layers', 'messengers')
MODES = ('convolution', 'max', 'average')
POOLING = dict(kernel=('s', 's+1', '2s+1'), mode=MODES, grow_in=('feed_forward', 'attention'))
POOLING |= dict(skip=('normalised', 'raw', 'none'))
TOKENS = dict(class_tokens=('fed', 'passed', 'dropped'), combine=('plain', 'add', 'gate'))
LOSSES = ('loss_ce', 'loss_dice', 'loss_focal', 'loss_lovasz', 'loss_tversky', 'loss_boundary')
NON_LOCAL = ('gaussian', 'embedded_gaussian', 'dot_product', 'concatenation')
# Strings that arguments of types and of those derived from them take, also in dicts; WORD for names of layers.
# MMPretrain's and MMSegmentation's names of architectures (``arch``) are in tables of the classes.
STRINGS: list[tuple[str, dict[str, Any]]] = [
    ('AbsolutePosition SinusoidalPosition', dict(resize=RESIZINGS)),
    ('ConvolutionalEmbed', dict(order=('conv', 'norm', 'act'))),
    ('FeedForward OnMap', TOKENS),
    ('HeadMixing', dict(norm=('BatchNorm2d', 'InstanceNorm2d'))),
    ('TokenBackbone', TOKENS | POOLING | dict(out_type=OUTPUTS, tied=WORD)),
    ('MultiscaleBlock PoolingAttention TokenPooling', POOLING),
    ('MViT', POOLING | dict(arch=WORD, out_type=OUTPUTS, pooling=MODES, position=('by arch',))),
    ('VTBackbone VTResNet', dict(out_type=('tokens', 'featmap'))),
    ('VTBackbone', dict(drop=WORD)),
    ('VTResNet', dict(positions=WORD)),
    ('Res2Net ResNeSt ResNet', dict(style=('pytorch', 'caffe'))),
    (
        'BEiTViT HiViT MViT RevVisionTransformer ViTEVA02 ViTSAM VisionTransformer XCiT',
        dict(out_type=('raw', 'cls_token', 'featmap', 'avg_featmap')),
    ),
    (
        'BEiTViT MViT SegformerHead SwinTransformer SwinTransformerV2 T2T_ViT VisionTransformer',
        dict(interpolate_mode=RESIZINGS),
    ),
    ('PyramidVig Vig', dict(graph_conv_type=('mr', 'edge', 'sage', 'gin'))),
    ('HRNet', dict(block=('BASIC', 'BOTTLENECK'))),
    ('STDCNet', dict(stdc_type=('STDCNet1', 'STDCNet2'), bottleneck_type=('cat', 'add'))),
    ('FPN', dict(add_extra_convs=('on_input', 'on_lateral', 'on_output'), mode=RESIZINGS)),
    ('BaseDecodeHead', dict(input_transform=('resize_concat', 'multiple_select'))),
    ('DNLHead NLHead NonLocal2d', dict(mode=NON_LOCAL)),
    ('ContextBlock GCHead', dict(pooling_type=('att', 'avg'), fusion_types=('channel_add', 'channel_mul'))),
    ('PSAHead', dict(psa_type=('bi-direction', 'collect', 'distribute'))),
    ('AsymmetricLoss CrossEntropyLoss FocalLoss LabelSmoothLoss SeesawLoss', dict(reduction=('none', 'mean', 'sum'))),
    ('BoundaryLoss CrossEntropyLoss DiceLoss FocalLoss LovaszLoss TverskyLoss', dict(loss_name=LOSSES)),
    ('DiceLoss LovaszLoss', dict(reduction=('none', 'mean', 'sum'))),
    ('LabelSmoothLoss', dict(mode=('original', 'classy_vision', 'multi_label'))),
    ('EncoderDecoder', dict(mode=('whole', 'slide'))),
]
