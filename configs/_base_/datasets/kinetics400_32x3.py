# Kinetics-400, clips of 32 frames, every 3rd.
_base_ = 'kinetics400.py'

clip = dict(type='vt.LoadClips', clip_length=32, frame_stride=3)
train_dataloader = dict(dataset=dict(pipeline=[clip, *_base_.train_pipeline[1:]]))
val_dataloader = dict(dataset=dict(pipeline=[dict(clip, num_clips=1), *_base_.val_pipeline[1:]]))
test_dataloader = dict(dataset=dict(pipeline=[dict(clip, num_clips=5), *_base_.test_pipeline[1:]]))
