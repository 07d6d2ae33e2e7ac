# Table 4 of the paper: learned filters in all modules. Scores: ../ablations.md.
# PYTHONPATH=. python tools/train.py projects/relations/configs/vt-resnet18-half_filters-only_twin-digits.py
_base_ = 'vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(later_tokenizer=dict(type='vt.FilterTokenizer')))
