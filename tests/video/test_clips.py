"""Which frames make a clip, at the borders too."""

import numpy as np
import pytest
from video.written_videos import draw, write

from vt.errors import UserError
from vt.video.clips import LoadClips


def starts(num_frames, **options):
    return LoadClips(**options).choose_starts(num_frames).tolist()


@pytest.mark.parametrize(
    ('num_frames', 'num_clips', 'expected'),
    [
        (300, 1, [119]),
        (300, 2, [0, 239]),
        (300, 5, [0, 60, 120, 179, 239]),
        (61, 3, [0, 0, 0]),
        (62, 2, [0, 1]),
        (10, 2, [0, 0]),
    ],
)
def test_clips_are_spread_from_end_to_end(num_frames, num_clips, expected):
    """A clip of 16 frames, every 4th, spans 61."""
    assert starts(num_frames, clip_length=16, frame_stride=4, num_clips=num_clips) == expected


@pytest.mark.parametrize(('num_frames', 'expected'), [(11, {0, 1, 2}), (9, {0}), (1, {0})])
def test_a_random_clip_begins_anywhere_from_which_it_fits(num_frames, expected):
    np.random.seed(0)
    assert {starts(num_frames, clip_length=5, frame_stride=2)[0] for _ in range(60)} == expected


def test_frames_of_clips(tmp_path):
    frames = draw(30)
    path = str(write(tmp_path / 'a.avi', frames, 'FFV1'))
    results = LoadClips(4, 3, num_clips=2).transform(dict(img_path=path))
    assert results['num_views'] == 2
    assert results['img_shape'] == results['ori_shape'] == (48, 64)
    for frame, index in zip(results['frames'], [0, 3, 6, 9, 20, 23, 26, 29], strict=True):
        assert np.array_equal(frame, frames[index])


def test_a_short_video_repeats_its_last_frame(tmp_path):
    frames = draw(6)
    info = dict(img_path=str(write(tmp_path / 'a.avi', frames, 'FFV1')))
    loaded = LoadClips(4, 3, num_clips=1).transform(info)['frames']
    assert [next(i for i in range(6) if np.array_equal(frame, frames[i])) for frame in loaded] == [0, 3, 5, 5]


@pytest.mark.parametrize(
    'options',
    [dict(clip_length=0), dict(clip_length=8.0), dict(clip_length='8'), dict(frame_stride=0), dict(num_clips=0)],
)
def test_settings_are_whole_numbers(options):
    ((name, value),) = options.items()
    with pytest.raises(UserError, match=f'{name}={value!r} must be a whole number of at least 1'):
        LoadClips(**dict(clip_length=4, frame_stride=3) | options)
