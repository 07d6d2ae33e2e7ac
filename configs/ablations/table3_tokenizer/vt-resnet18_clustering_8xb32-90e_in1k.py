# Table 3 of the paper, VT-R18: k-means centres of the image as filters of the first module.
# Paper: top-1 71.5. Not trained here yet.
# bash tools/dist_train.sh configs/ablations/table3_tokenizer/vt-resnet18_clustering_8xb32-90e_in1k.py 8
_base_ = '../../vt_resnet/vt-resnet18_8xb32-90e_in1k.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.ClusteringTokenizer')))
