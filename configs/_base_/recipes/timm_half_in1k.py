# As timm_in1k.py, with images of mean and standard deviation 0.5, as the authors of TNT and DeepViT normalise them.
_base_ = 'timm_in1k.py'

half = [127.5, 127.5, 127.5]
data_preprocessor = dict(mean=half, std=half)
train_pipeline = _base_.train_pipeline
train_pipeline[3]['transforms'][0][0]['hparams']['pad_val'] = [128, 128, 128]
train_pipeline[3]['transforms'][1][0]['hparams']['pad_val'] = [128, 128, 128]
train_pipeline[4] |= dict(fill_color=half, fill_std=half)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
