"""What is wrong with a video file, read as the pipeline reads it."""

import math
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from vt.engine.errors import in_one_line
from vt.video.clips import LoadClips
from vt.video.decoders import open_video

from .samples import Problem, Sample, wrong_label

READ, READ_PIXELS = 32, 128_000_000  # held at a time: so many frames, if they have no more pixels


@dataclass(frozen=True)
class VideoCheck:
    """A check of the videos of one data set.

    Args:
        load_clips: the pipeline's step that reads them.
        num_classes: labels are below it; None where it is not known.
        name: of the data set.
        whole: decode every frame, and note a digest of each file; otherwise the first and the last frame alone.
    """

    load_clips: LoadClips
    num_classes: int | None
    name: str
    whole: bool = False
    reads_files: bool = True
    before_run: bool = True

    def __call__(self, info: dict) -> Sample:
        """Look at one sample, given what the data set says about it."""
        sample, path = Sample(), info['img_path']
        problem = wrong_label(info, self.num_classes, self.name)
        if problem is not None:
            sample.problems.append(problem)
        if not Path(path).is_file():
            sample.problems.append(Problem('missing', path, 'is not there'))
            return sample
        try:
            self._look_at_frames(path, sample)
        except Exception as error:  # a decoder's, of any type
            sample.problems.append(Problem('unreadable', path, f'cannot be read: {in_one_line(error)}'))
        return sample

    def _look_at_frames(self, path: str, sample: Sample) -> None:
        video = open_video(path, self.load_clips.decoder)
        number = video.num_frames
        sample.size, sample.num_frames, sample.fps = video.size, number, video.fps
        if self.whole:
            sample.digest = blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
            step = max(1, min(READ, READ_PIXELS // math.prod(video.size)))
            for first in range(0, number, step):
                video.read(range(first, min(first + step, number)))
        else:
            video.read([0, number - 1])
        self.load_clips.check_length(number)
