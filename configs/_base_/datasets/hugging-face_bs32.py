# Images and labels of a data set that Hugging Face's library `datasets` saved by `save_to_disk` (pip install datasets):
# set data_root, its folder; and splits and columns, if their names differ.
_base_ = 'imagenet_bs32.py'

data_root = 'data/images'
data_preprocessor = dict(num_classes='auto')  # as of the head; needed for mixing of images

# VT's tools insert data_root into data sets that do not set their own.
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='vt.HuggingFaceDataset',
        data_root=None,
        split='train',
        image='image',
        label='label',
        pipeline={{_base_.train_pipeline}},
    )
)
val_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='vt.HuggingFaceDataset',
        data_root=None,
        split='validation',
        image='image',
        label='label',
        pipeline={{_base_.test_pipeline}},
    )
)
test_dataloader = val_dataloader

val_evaluator = dict(topk=(1,))
test_evaluator = val_evaluator
