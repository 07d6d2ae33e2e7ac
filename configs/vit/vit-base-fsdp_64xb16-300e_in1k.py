# ViT-B/16 on ImageNet-1k with DeiT's recipe, in 64 processes that share its weights out (FSDP).
# Source: facebookresearch/deit 7e160fe, main.py: it is DeiT-B's training.
# Remaining: none.
# NNODES=8 NODE_RANK=0 MASTER_ADDR=node0 bash tools/dist_train.sh configs/vit/vit-base-fsdp_64xb16-300e_in1k.py 8
_base_ = ['vit-base_16xb64-300e_in1k.py', '../_base_/strategies/fsdp.py']

train_dataloader = dict(batch_size=16)
