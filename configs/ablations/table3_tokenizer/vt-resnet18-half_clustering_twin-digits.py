# Table 3 of the paper: k-means centres of the image as filters of the first module. Scores: docs/ablations.md.
# python tools/train.py configs/ablations/table3_tokenizer/vt-resnet18-half_clustering_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.ClusteringTokenizer')))
