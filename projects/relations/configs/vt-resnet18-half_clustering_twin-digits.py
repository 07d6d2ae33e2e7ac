# Table 3 of the paper: k-means centres of the image as filters of the first module. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_clustering_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(tokenizer=dict(type='vt.ClusteringTokenizer')))
