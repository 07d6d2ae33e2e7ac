# How a run behaves, as in all configs, with the data sets of this project.
_base_ = '../../../../configs/_base_/default_runtime.py'

custom_imports = dict(imports=['vt', 'projects.relations.tasks'])
