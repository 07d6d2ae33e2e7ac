# MViTv2-T on ImageNet-1k as its authors trained it. Published: top-1 82.3; not trained here.
# Source: facebookresearch/mvit dfbdfdf, configs/MVITv2_T.yaml and mvit/config/defaults.py.
# Remaining: the number of nodes is not public; 2.5e-4 for each 256 images is 4e-3 for the 4,096 of MViT.
# bash tools/dist_train.sh configs/mvitv2/mvitv2-tiny_64xb64-300e-authors_in1k.py 64
_base_ = [
    '../_base_/recipes/mvit_in1k.py',
    '../_base_/datasets/imagenet_bs64_randaugment-n6.py',
    '../_base_/models/mvitv2-tiny.py',
]

model = _base_.architecture
