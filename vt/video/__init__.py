"""Videos: data sets, decoders, clips, transforms of frames, and classification from several views of a video.

Letters of this package: N batch, V views of one video (clips times crops), C channels, T frames of a clip, H and W
height and width of a frame. Frames are BGR, ``(H, W, C)`` uint8, like images in mmcv.
"""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

__all__ = ['ClipPreprocessor', 'LoadClips', 'PackClips', 'SameForAllFrames', 'ThreeCrops', 'VideoClassifier']
__all__ += ['VideoDataset', 'open_video']

if TYPE_CHECKING:
    from .clips import LoadClips, PackClips, SameForAllFrames, ThreeCrops
    from .dataset import VideoDataset
    from .decoders import open_video
    from .views import ClipPreprocessor, VideoClassifier
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)
