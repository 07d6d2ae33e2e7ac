"""``tools/predict.py`` as a user calls it, on files of every kind, good and bad."""

import csv
import json
import os

import cv2
import numpy as np
import pytest
from apis.small_models import make, write_picture
from forked_tools import run_forked
from tool_runner import assert_one_line
from video.written_videos import write

from vt import apis
from vt.apis.hub import HubModel


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some predictions')


@pytest.fixture(scope='module')
def classifier(folder):
    return make(folder, 'vt-resnet18-half_digits')


@pytest.fixture
def pictures(classifier, tmp_path):
    """Two pictures in folders, and what stands beside them: a text and a damaged picture."""
    (tmp_path / 'data/more').mkdir(parents=True)
    write_picture(tmp_path / 'data/a.png', classifier[3]['inputs'])
    cv2.imwrite(str(tmp_path / 'data/more/b.jpg'), np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8))
    (tmp_path / 'data/notes.txt').write_text('no picture')
    return tmp_path


def test_a_folder_is_predicted_and_what_cannot_be_read_is_named_at_the_end(classifier, pictures):
    config, checkpoint, model, _ = classifier
    (pictures / 'data/bad.png').write_bytes((pictures / 'data/a.png').read_bytes()[:100])
    arguments = [config, checkpoint, 'data', 'nowhere.png', '--out', 'r.json', '--out-dir', 'drawn', '--top-k', '3']
    result = run_forked('predict.py', *arguments, '--batch-size', '2', cwd=pictures)
    assert_one_line(result, '2 of 4 files could not be read and were skipped: data/bad.png, nowhere.png')
    assert 'skipped: data/bad.png is no picture that can be read' in result.stderr
    assert 'skipped: there is no picture nowhere.png' in result.stderr
    found = json.loads((pictures / 'r.json').read_text())
    assert [entry['file'] for entry in found] == ['data/a.png', 'data/more/b.jpg']
    inferencer = apis.ClassificationInferencer(model)
    for entry in found:
        (expected,) = inferencer(str(pictures / entry['file']))
        assert [row['score'] for row in entry['predictions']] == pytest.approx(
            np.sort(expected['pred_scores'])[:-4:-1].tolist(), abs=1e-6
        )
        assert entry['predictions'][0]['name'] == expected['pred_class']
    assert f'{found[0]["predictions"][0]["name"]} {100 * found[0]["predictions"][0]["score"]:.1f} %' in result.stdout
    assert cv2.imread(str(pictures / 'drawn/a.png')).shape[:2] == (256, 256)
    assert (pictures / 'drawn/more/b.jpg.png').exists()


def test_patterns_and_a_table_of_comma_separated_values(classifier, pictures):
    config, checkpoint, *_ = classifier
    result = run_forked('predict.py', config, checkpoint, 'data/**/*.*g', '--out', 'r.csv', '--show', cwd=pictures)
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((pictures / 'r.csv').open()))
    assert [row['file'] for row in rows] == ['data/a.png'] * 5 + ['data/more/b.jpg'] * 5
    assert list(rows[0]) == ['file', 'label', 'name', 'score']
    assert result.stdout.count('▀') > 1000


def test_a_saved_model_is_its_folder(classifier, pictures):
    config, checkpoint, model, _ = classifier
    HubModel(model).save_pretrained(pictures / 'saved')
    for source, out in ((('saved', 'saved'), 'a.json'), ((config, checkpoint), 'b.json')):
        result = run_forked('predict.py', *source, 'data/a.png', '--out', out, cwd=pictures)
        assert result.returncode == 0, result.stderr
    assert json.loads((pictures / 'a.json').read_text()) == json.loads((pictures / 'b.json').read_text())
    (pictures / 'saved/model.safetensors').unlink()
    result = run_forked('predict.py', 'saved', 'saved', 'data/a.png', cwd=pictures)
    assert_one_line(result, 'saved holds no model.safetensors: give a folder that save_pretrained wrote')


def test_segments_are_laid_over_pictures_of_any_size(folder, tmp_path):
    config, checkpoint, _, sample = make(folder, 'vt-fpn_r18_digit-scenes')
    write_picture(tmp_path / 'a.png', sample['inputs'])
    write_picture(tmp_path / 'b.png', sample['inputs'][:, :100])
    arguments = [config, checkpoint, 'a.png', 'b.png', '--out', 'r.json', '--out-dir', 'drawn']
    result = run_forked('predict.py', *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    first, second = json.loads((tmp_path / 'r.json').read_text())
    assert (second['height'], second['width']) == (100, 128)
    labels = apis.SegmentationInferencer(config, checkpoint)(str(tmp_path / 'a.png'))['predictions']
    shares = {row['label']: row['share'] for row in first['predictions']}
    assert shares == pytest.approx({label: (labels == label).mean() for label in np.unique(labels)}, abs=1e-6)
    drawn = cv2.imread(str(tmp_path / 'drawn/b.png'))
    assert drawn.shape == (100, 128, 3)
    assert np.abs(drawn.astype(int) - cv2.imread(str(tmp_path / 'b.png'))).mean() > 10


def test_videos_are_classified_and_a_picture_is_none(folder, pictures):
    config, checkpoint, *_ = make(folder, 'mvit-tiny_moving-digits')
    frames = list(np.random.default_rng(0).integers(0, 256, (11, 48, 64, 3), np.uint8))
    write(pictures / 'videos/a.avi', frames, 'FFV1')
    arguments = [config, checkpoint, 'videos', 'data/a.png', 'data/notes.txt', '--out', 'r.json', '--out-dir', 'drawn']
    result = run_forked('predict.py', *arguments, cwd=pictures)
    assert_one_line(result, '2 of 3 files could not be read and were skipped: data/a.png, data/notes.txt')
    assert [entry['file'] for entry in json.loads((pictures / 'r.json').read_text())] == ['videos/a.avi']
    assert cv2.imread(str(pictures / 'drawn/a.avi.png')).shape == (256, 8 * 256, 3)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['empty'], 'empty holds no file that ends in .jpg'),
        (['data/*.gif'], 'data/*.gif holds no file that ends in .jpg'),
        (['data', '--out', 'r.txt'], '--out r.txt: results are written as .json or .csv'),
        (['data', '--out', 'none/r.csv'], 'there is no folder none to write r.csv into'),
        (['data', '--out-dir', 'data'], 'would be written over: give another folder for the pictures'),
        (['data', '--out-dir', 'data/a.png'], '--out-dir data/a.png is a file where a folder is needed'),
        (['data', '--top-k', '0'], '--batch-size 8 and --top-k 0 must be at least 1'),
        (['data', '--out-dir', 'locked/drawn'], 'no permission for locked/drawn'),
    ],
)
def test_what_cannot_be_done_is_one_line_before_any_work(arguments, message, classifier, pictures):
    if 'locked/drawn' in arguments:
        if os.geteuid() == 0:
            pytest.skip('root may write everywhere')
        (pictures / 'locked').mkdir(mode=0o500)
    (pictures / 'empty').mkdir()
    before = (pictures / 'data/a.png').read_bytes()
    result = run_forked('predict.py', *classifier[:2], *arguments, cwd=pictures)
    assert_one_line(result, message)
    assert (pictures / 'data/a.png').read_bytes() == before
    assert not (pictures / 'r.csv').exists()


def test_another_models_checkpoint_and_an_unknown_name_are_one_line(classifier, pictures):
    config, checkpoint, *_ = classifier
    result = run_forked('predict.py', 'vt-resnet18_digits', checkpoint, 'data', cwd=pictures)
    assert_one_line(result, f"{checkpoint} is not the model's: ")
    result = run_forked('predict.py', 'vt-resnet18_digit', checkpoint, 'data', cwd=pictures)
    assert_one_line(result, "there is no model 'vt-resnet18_digit': did you mean vt-resnet18_digits")
    result = run_forked('predict.py', config, 'nowhere.pth', 'data', cwd=pictures)
    assert_one_line(result, 'there is no checkpoint nowhere.pth')
