# Scenes of handwritten digits at 128x128, embedded: nothing to download (8,192 train, 256 test).
_base_ = 'segmentation_loaders.py'

train_dataloader = dict(
    batch_size=8,
    num_workers=0,  # images are made in memory
    persistent_workers=False,
    dataset=dict(type='vt.DigitScenes', split='train', num_scenes=8192, pipeline=[dict(type='PackSegInputs')]),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(type='vt.DigitScenes', split='test', num_scenes=256, pipeline=[dict(type='PackSegInputs')]),
)
test_dataloader = val_dataloader
