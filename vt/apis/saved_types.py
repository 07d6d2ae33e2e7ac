"""Types of the parts that a saved model may contain, the strings that their arguments take, and what is not saved."""

import re

SCOPES = ('mmpretrain', 'mmseg')
# Arguments that are not saved: initial weights, augmentations, names of labels, settings of the machine.
LEFT_OUT = (
    *('init_cfg', 'layer_inits', 'pretrained', 'train_cfg', 'batch_augments', 'sampler'),
    *('algorithm_keys', 'backend_args', 'file_client_args', 'meta_keys'),
)
# Names of the types of models by scope. No wrapper of another library is among them: timm and transformers
# fetch, and open the files that their arguments name.
TYPES = dict(
    vt="""
        AbsolutePosition Attention Block ClassAttention ClipPreprocessor ClusteringTokenizer ContinuousPositionBias
        ConvolutionalEmbed CosineAttention CubeEmbed DistillationTokenHead DropoutLinearClsHead DynamicTokenizer
        EfficientAttention FeedForward FilterTokenizer FrozenBackbone GraphConvolution HRFormer HadamardAttention
        HeadMixing LargeImageSegmentor LayerwiseClassAttention MViT MessengerBias MessengerBlock MessengerEmbed
        MessengerMerging MessengerWindows MultiscaleBlock NormalCell OnMap PEG ParallelAttention PatchEmbed PatchMerging
        PerformerAttention PoolingAttention PoolingReduction PoolingTokenizer PositionEncoder
        ProgressiveSampling Projector PyramidReduction RecurrentTokenizer ReducedAttention ReductionCell
        RelativePositionBias ScaleFusion SegBandsPreProcessor SeparatePosition SimplePyramid SinusoidalPosition
        SoftSplit SparseAttention SqueezeExcite StridedReduction StripeAttention TalkingHeadsAttention TokenAverage
        TokenBackbone TokenBatchNorm TokenEncoder TokenLabelHead TokenLearner TokenPooling TokenTransformer
        TokenizerEmbed VTBackbone VTFPN VTModule VTResNet VTResNetAnywhere VTResNetCIFAR ValueTransformer
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
STEPS = dict(  # of pipelines
    vt='LoadBands LoadClips PackClips SameForAllFrames ThreeCrops',
    mmpretrain='CenterCrop EfficientNetCenterCrop LoadImageFromFile PackInputs Resize ResizeEdge',
    mmseg='PackSegInputs Resize ResizeToMultiple',
    mmengine='CenterCrop LoadImageFromFile Resize',
)
WORD = re.compile(r'(?!_)[\w+.-]{1,64}')  # a name: no path, address, expression, or key of mmengine
RESIZINGS = 'nearest bilinear bicubic area lanczos'
POOLINGS = 'convolution max average'
# Strings that arguments take, by the name of the argument, of any of these types. Other arguments take none.
STRINGS = dict(
    arch='768/32 1024/20 1536/20',  # of ConvMixer
    add_extra_convs='on_input on_lateral on_output',
    backend='cv2 pillow',
    block='BASIC BOTTLENECK',
    bottleneck_type='cat add',
    class_tokens='fed passed dropped',
    color_type='color grayscale',
    combine='plain add gate',
    edge='short long width height',
    fusion_types='channel_add channel_mul',
    graph_conv_type='mr edge sage gin',
    grow_in='feed_forward attention',
    imdecode_backend='cv2 pillow',
    input_transform='resize_concat multiple_select',
    interpolate_mode=RESIZINGS,
    interpolation=RESIZINGS,
    kernel='s s+1 2s+1',
    loss_name='loss_ce loss_dice loss_focal loss_lovasz loss_tversky loss_boundary',
    mode=f'{POOLINGS} {RESIZINGS} gaussian embedded_gaussian dot_product concatenation whole slide original '
    'classy_vision multi_label',
    norm='BatchNorm2d InstanceNorm2d',
    order='conv norm act',
    out_type='class_tokens average map tokens layers messengers featmap raw cls_token avg_featmap',
    pooling=POOLINGS,
    pooling_type='att avg',
    psa_type='bi-direction collect distribute',
    reduction='none mean sum',
    resize=RESIZINGS,
    skip='normalised raw none',
    stdc_type='STDCNet1 STDCNet2',
    style='pytorch caffe',
)
NAMES = ('arch', 'drop', 'positions', 'tied')  # arguments that take any name of architectures and layers
