# Folder of images, one folder per class: <data_root>/{train,val}/<class>/. Set data_root.
_base_ = 'imagenet_bs32.py'

data_root = 'data/images'
# Suffixes of images, in lower case; upper case is read too.
extensions = ['.bmp', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.ppm', '.tif', '.tiff', '.webp']
data_preprocessor = dict(num_classes='auto')  # as of the head; needed for mixing of images

# VT's tools insert data_root into data sets that do not set their own.
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root=None,
        data_prefix='train',
        extensions=extensions,
        pipeline={{_base_.train_pipeline}},
    )
)
val_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root=None,
        data_prefix='val',
        extensions=extensions,
        pipeline={{_base_.test_pipeline}},
    )
)
test_dataloader = val_dataloader

val_evaluator = dict(topk=(1,))
test_evaluator = val_evaluator
