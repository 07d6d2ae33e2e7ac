# Table 4 of the paper: learned filters in all modules. Scores: docs/ablations.md.
# python tools/train.py configs/ablations/table4_recurrent/vt-resnet18-half_filters-only_twin-digits.py
_base_ = '../../vt_resnet/vt-resnet18-half_twin-digits.py'

model = dict(backbone=dict(later_tokenizer=dict(type='vt.FilterTokenizer')))
