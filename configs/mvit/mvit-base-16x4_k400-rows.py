# MViT-B on Kinetics-400, videos and labels as rows of Hugging Face's library datasets; not trained here.
# data/kinetics400-rows: docs/how-to/many-images.md says how to make it of folders.
# vt train mvit-base-16x4_k400-rows
_base_ = 'mvit-base-16x4_k400.py'

rows = dict(_delete_=True, type='vt.HuggingFaceDataset', data_root='data/kinetics400-rows', image='video')
train_dataloader = dict(dataset=dict(**rows, split='train', pipeline={{_base_.train_pipeline}}))
val_dataloader = dict(dataset=dict(**rows, split='val', pipeline={{_base_.val_pipeline}}))
test_dataloader = dict(dataset=dict(**rows, split='val', pipeline={{_base_.test_pipeline}}))
