# A VT-ResNet from scratch on any folder of images, with the tuned recipe: docs/training.md.
_base_ = ['../datasets/image_folder_bs32.py', 'tuned_bs32-90e.py', '../default_runtime.py']
