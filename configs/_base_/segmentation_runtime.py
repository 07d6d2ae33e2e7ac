# How a segmentation run behaves: iterations instead of epochs, MMSegmentation's parts.
_base_ = 'default_runtime.py'

default_scope = 'mmseg'

default_hooks = dict(
    logger=dict(interval=50, log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=8000, save_best='mIoU'),
    visualization=dict(type='vt.FigureHook'),
)
log_processor = dict(by_epoch=False)
visualizer = dict(type='SegLocalVisualizer', name='visualizer')  # browse_dataset.py, MMSegmentation's, wants a name
