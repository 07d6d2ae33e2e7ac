# Kinetics-400, as kinetics400.py, in tar shards: data/kinetics400-shards/{train,val}, which tools/shard.py makes of it.
_base_ = 'kinetics400.py'

data_root = 'data/kinetics400-shards'
shards = dict(_delete_=True, type='vt.ShardedDataset', data_root=data_root)
train_dataloader = dict(dataset=dict(**shards, split='train', pipeline={{_base_.train_pipeline}}))
val_dataloader = dict(dataset=dict(**shards, split='val', pipeline={{_base_.val_pipeline}}))
test_dataloader = dict(dataset=dict(**shards, split='val', pipeline={{_base_.test_pipeline}}))
