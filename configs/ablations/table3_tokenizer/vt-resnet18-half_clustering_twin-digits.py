# Table 3 of the paper: the first module's filters are the image's own k-means centres. Scores: docs/ablations.md.
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.ClusteringTokenizer')))
