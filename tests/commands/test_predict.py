"""``tools/predict.py`` as a user calls it, on files of every kind, good and bad."""

import csv
import json
import os
import signal
import time
from io import BytesIO

import cv2
import numpy as np
import pytest
from apis.small_models import write_image
from forked_tools import ForkedTool
from PIL import Image
from tool_runner import assert_one_line, call, succeed
from video.written_videos import write

from vt import apis
from vt.commands.predict import ResultFile, predict_batch
from vt.errors import UserError
from vt.inference.image_files import encode_mask


@pytest.fixture
def classifier(small_model):
    return small_model('vt-resnet18-half_digits')


@pytest.fixture
def images(classifier, tmp_path):
    """Two images in folders, and what stands beside them: a text and a damaged image."""
    (tmp_path / 'data/more').mkdir(parents=True)
    write_image(tmp_path / 'data/a.png', classifier[3]['inputs'])
    cv2.imwrite(str(tmp_path / 'data/more/b.jpg'), np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8))
    (tmp_path / 'data/notes.txt').write_text('no image')
    return tmp_path


def test_every_file_of_a_folder_is_predicted_or_named(classifier, images):
    """Also of linked folders, which may lead back."""
    config, checkpoint, model, _ = classifier
    image = cv2.imread(str(images / 'data/a.png'), cv2.IMREAD_GRAYSCALE)
    (images / 'other').mkdir()
    for path in ('data/c.pgm', 'other/d.png'):
        cv2.imwrite(str(images / path), image)
    (images / 'data/link').symlink_to('../other')
    (images / 'other/back').symlink_to('../other')
    (images / 'data/broken.jpg').symlink_to('gone.jpg')
    (images / 'data/e.HEIC').write_bytes(b'some')
    (images / 'data/bad.png').write_bytes((images / 'data/a.png').read_bytes()[:100])
    arguments = [config, checkpoint, 'data', 'nowhere.png', '--out', 'r.json', '--out-dir', 'drawn', '--top-k', '3']
    result = call('predict.py', *arguments, '--batch-size', '2', cwd=images)
    skipped = 'data/bad.png, data/broken.jpg, nowhere.png'
    assert_one_line(result, f'3 of 7 files could not be read and were skipped: {skipped}')
    assert 'skipped: data/bad.png is not a readable image' in result.stderr
    assert 'skipped: there is no image nowhere.png' in result.stderr
    assert 'warning: data contains files of other types, which are skipped: 1 .heic, 1 .txt' in result.stderr
    found = json.loads((images / 'r.json').read_text())
    assert [entry['file'] for entry in found] == ['data/a.png', 'data/c.pgm', 'data/link/d.png', 'data/more/b.jpg']
    inferencer = apis.ClassificationInferencer(model)
    for entry in found:
        (expected,) = inferencer(str(images / entry['file']))
        best = np.sort(expected['pred_scores'])[:-4:-1].tolist()
        assert [row['score'] for row in entry['predictions']] == pytest.approx(best, abs=1e-6)
        assert entry['predictions'][0]['name'] == expected['pred_class']
    assert f'{found[0]["predictions"][0]["name"]} {100 * found[0]["predictions"][0]["score"]:.1f} %' in result.stdout
    assert cv2.imread(str(images / 'drawn/a.png')).shape[:2] == (256, 256)
    assert (images / 'drawn/more/b.jpg.png').exists()


def test_a_file_that_fails_in_a_batch_fails_alone(classifier, images):
    inferencer, files = apis.ClassificationInferencer(classifier[2]), ['data/a.png', 'data/more/b.jpg']
    samples = [inferencer.pipeline(str(images / file)) for file in files]
    samples[1]['inputs'] = samples[1]['inputs'].repeat(2, 1, 1)
    (file, found), (failed, error) = predict_batch(inferencer, [*zip(files, samples)])
    (expected,) = inferencer(str(images / 'data/a.png'))
    assert (file, failed) == (*files,)
    assert found.pred_score.tolist() == expected['pred_scores'].tolist()
    assert isinstance(error, RuntimeError)


def test_mixed_precision_and_a_saved_model(classifier, images):
    """A saved model, which is its folder, predicts what its config and checkpoint do."""
    config, checkpoint, model, _ = classifier
    apis.save_model(model, images / 'saved')
    found = []
    for source in ([config, checkpoint], ['saved', 'saved'], [config, checkpoint, '--amp']):
        succeed(call('predict.py', *source, 'data/a.png', '--out', 'r.json', '--top-k', '10', cwd=images))
        found.append(json.loads((images / 'r.json').read_text()))
    assert found[0] == found[1]
    exact, halved = ([row['score'] for row in entry[0]['predictions']] for entry in found[1:])
    assert halved == pytest.approx(exact, abs=0.02)
    assert halved != pytest.approx(exact, abs=1e-6)
    assert sum(halved) == pytest.approx(1, abs=1e-6)  # of bfloat16 it would be off by 1e-3


def test_segments_of_any_size_are_shares_overlays_and_indexed_masks_with_a_georeference(small_model, tmp_path):
    tifffile = pytest.importorskip('tifffile')
    config, checkpoint, _, sample = small_model('vt-fpn_r18_digit-scenes')
    (tmp_path / 'data/more').mkdir(parents=True)
    write_image(tmp_path / 'data/a.png', sample['inputs'])
    write_image(tmp_path / 'data/more/a.b.bmp', sample['inputs'][:, :100])
    pixels = sample['inputs'].permute(1, 2, 0).numpy()
    keys = (1, 1, 0, 1, 3072, 0, 1, 32632)
    tags = [(33550, 'd', 3, (10.0, 10.0, 0.0), True), (33922, 'd', 6, (0.0, 0.0, 0.0, 5e5, 5e6, 0.0), True)]
    tags += [(34735, 'H', 8, keys, True), (42113, 's', 2, '0', True)]  # the last: the images' value without data
    tifffile.imwrite(tmp_path / 'data/place.tiff', pixels[..., ::-1], photometric='rgb', extratags=tags)
    tifffile.imwrite(tmp_path / 'data/no_place.tif', pixels[..., ::-1], photometric='rgb')
    arguments = [config, checkpoint, 'data', '--masks', 'masks', '--out', 'r.json', '--out-dir', 'drawn', '--top-k=1']
    assert succeed(call('predict.py', *arguments, cwd=tmp_path)).stdout.count(' %') == 4  # the file has all classes
    entries = {entry['file']: entry for entry in json.loads((tmp_path / 'r.json').read_text())}
    assert [entries['data/more/a.b.bmp'][side] for side in ('height', 'width')] == [100, 128]
    overlay = cv2.imread(str(tmp_path / 'drawn/more/a.b.bmp.png'))
    assert overlay.shape == (100, 128, 3)
    assert np.abs(overlay.astype(int) - cv2.imread(str(tmp_path / 'data/more/a.b.bmp'))).mean() > 10
    found = sorted(str(path.relative_to(tmp_path / 'masks')) for path in (tmp_path / 'masks').rglob('*.*'))
    assert found == ['a.png', 'more/a.b.png', 'no_place.png', 'place.tif']
    inferencer = apis.SegmentationInferencer(config, checkpoint)
    for image, mask in (('a.png', 'a.png'), ('more/a.b.bmp', 'more/a.b.png'), ('place.tiff', 'place.tif')):
        written = Image.open(tmp_path / 'masks' / mask)
        assert written.mode == 'P'
        labels = inferencer(str(tmp_path / 'data' / image))['predictions']
        assert (np.asarray(written) == labels).all()
        shares = {row['label']: row['share'] for row in entries[f'data/{image}']['predictions']}
        assert shares == pytest.approx({label: (labels == label).mean() for label in np.unique(labels)}, abs=1e-6)
        assert [*shares.values()] == sorted(shares.values(), reverse=True)
        colours = np.array(inferencer.model.dataset_meta['palette'])[labels]
        assert (np.asarray(written.convert('RGB')) == colours).all()
    with tifffile.TiffFile(tmp_path / 'masks/place.tif') as file:
        kept = {code: file.pages[0].tags[code].value for code in (33550, 33922, 34735)}
        assert kept == {33550: (10.0, 10.0, 0.0), 33922: (0.0, 0.0, 0.0, 5e5, 5e6, 0.0), 34735: keys}
        assert 42113 not in file.pages[0].tags


def test_masks_of_many_classes_have_16_bits(tmp_path):
    labels = np.arange(300).reshape(15, 20)
    cv2.imwrite(str(tmp_path / 'a.png'), labels.astype(np.uint8))
    suffix, content = encode_mask(labels, [[0, 0, 0]] * 300, str(tmp_path / 'a.png'))
    assert (suffix, np.asarray(Image.open(BytesIO(content))).tolist()) == ('.png', labels.tolist())
    suffix, content = encode_mask(labels + 65535 - 299, [[0, 0, 0]] * 65536, str(tmp_path / 'a.png'))
    assert np.asarray(Image.open(BytesIO(content))).tolist() == (labels + 65535 - 299).tolist()
    with pytest.raises(UserError, match='class 65536 has none of the 65537 colours, or does not fit into 16 bits'):
        encode_mask(labels + 65536 - 299, [[0, 0, 0]] * 65537, str(tmp_path / 'a.png'))


def test_videos_are_classified_and_an_image_is_none(small_model, images):
    config, checkpoint, *_ = small_model('mvit-tiny_moving-digits')
    frames = list(np.random.default_rng(0).integers(0, 256, (11, 48, 64, 3), np.uint8))
    write(images / 'videos/a.avi', frames, 'FFV1')
    arguments = [config, checkpoint, 'videos', 'data/a.png', 'data/notes.txt', '--out', 'r.json', '--out-dir', 'drawn']
    result = call('predict.py', *arguments, cwd=images)
    assert_one_line(result, '2 of 3 files could not be read and were skipped: data/a.png, data/notes.txt')
    assert [entry['file'] for entry in json.loads((images / 'r.json').read_text())] == ['videos/a.avi']
    assert cv2.imread(str(images / 'drawn/a.avi.png')).shape == (256, 8 * 256, 3)


def test_each_input_has_its_own_image_below_the_folder(classifier, images):
    """Names that collide or lead out, that no terminal may obey, and files that come twice."""
    (images / 'work/deep').mkdir(parents=True)
    odd = ['b.jpg', 'b.jpg.png', '\x1b[31mred.png', '[bold]x[bold].png', os.fsdecode(b'\xff.png'), 'ü $\\frac$ $.png']
    for name in odd:
        (images / 'work' / name).write_bytes((images / 'data/a.png').read_bytes())
    (images / 'work/deep/b.jpg').symlink_to(images / 'data/a.png')
    inputs = ['.', '../data/a.png', './b.jpg', 'b.jpg', '../data/more/../a.png', images / 'work/b.jpg']
    arguments = [*classifier[:2], *inputs, '--top-k', '1', '--out', 'r.csv', '--out-dir', '../drawn']
    result = succeed(call('predict.py', *arguments, cwd=images / 'work'))
    assert '\x1b[31mred' not in result.stdout + result.stderr
    assert all(text in result.stdout for text in ('\\x1b[31mred.png', '[bold]x[bold].png', '\\udcff.png'))
    drawn = [str(path.relative_to(images)) for path in (images / 'drawn').rglob('*.png')]
    assert len(drawn) == len(odd) + 2
    assert all(path.isprintable() for path in drawn)
    assert sorted(path.name for path in images.iterdir() if path.name[0] != '.') == ['data', 'drawn', 'work']
    rows = [row['file'] for row in csv.DictReader((images / 'work/r.csv').open(newline=''))]
    assert len(rows) == len(odd) + 2
    assert all(row.isprintable() for row in rows)
    assert (images / 'work/r.csv').read_text().startswith('file,label,name,score\n')


@pytest.mark.parametrize(('out', 'signal_number'), [('r.csv', signal.SIGINT), ('r.json', signal.SIGKILL)])
def test_what_was_predicted_is_kept_when_the_process_ends(out, signal_number, classifier, images):
    """It ends at an image that never comes: a pipe to which nobody writes."""
    for index in range(20):
        (images / f'data/{index:02}.png').write_bytes((images / 'data/a.png').read_bytes())
    config = images / 'waiting.py'
    config.write_text(
        f"_base_ = {str(classifier[0])!r}\ncustom_imports = dict(imports=['vt', 'bad_input.steps'])\n"
        "pipeline = [dict(type='Wait', at='19.png'), dict(type='PackInputs')]\n"
        'test_dataloader = dict(dataset=dict(pipeline=pipeline))\n'
    )
    arguments = [config, classifier[1], 'data', '--out', out, '--batch-size', '2', '--top-k', '2']
    tool = ForkedTool('predict.py', *arguments, cwd=images)
    end = time.monotonic() + 60
    part = images / f'{out}.part'  # the file that never comes is read ahead
    while not ((images / 'waits').exists() and part.exists() and 'data/17.png' in part.read_text()):
        assert tool.process.is_alive(), tool.stderr
        assert time.monotonic() < end
        time.sleep(0.02)
    tool.send_signal(signal_number)
    result = tool.wait(30)
    assert result.returncode == (-9 if signal_number == signal.SIGKILL else 130)
    text = part.read_text()
    if out == 'r.csv':
        files = [row['file'] for row in csv.DictReader(text.splitlines())][::2]
    else:
        files = [entry['file'] for entry in json.loads(f'{text}]')]
    assert files == [f'data/{index:02}.png' for index in range(18)]
    assert not (images / out).exists()
    assert (f'the results so far are in {images / out}.part' in result.stderr) == (signal_number == signal.SIGINT)


def result_of(file):
    return dict(file=file, predictions=[dict(label=0, name='one', score=1.0)])


@pytest.mark.parametrize('out', ['r.csv', 'r.json'])
def test_without_results_the_earlier_ones_stay(out, tmp_path):
    part = tmp_path / f'new/{out}.part'
    part.parent.mkdir()
    part.write_text('of a killed command')
    with ResultFile(part.with_name(out)) as results:
        assert part.read_text() == 'of a killed command'  # until there is a result
        results.add(result_of('a'))
        results.add(result_of('b'))
    text = part.with_name(out).read_text()
    found = json.loads(text) if out == 'r.json' else csv.DictReader(text.splitlines())
    assert [entry['file'] for entry in found] == ['a', 'b']
    with ResultFile(part.with_name(out)):
        pass
    assert part.with_name(out).read_text() == text
    assert [path.name for path in part.parent.iterdir()] == [out]


def test_results_follow_a_link(tmp_path):
    (tmp_path / 'link.csv').symlink_to(tmp_path / 'new/r.csv')
    with ResultFile(tmp_path / 'link.csv') as out:  # the folder is created
        out.add(result_of('a'))
    assert (tmp_path / 'link.csv').is_symlink()
    assert (tmp_path / 'new/r.csv').read_text().splitlines()[1] == 'a,0,one,1.0'


def test_what_befalls_every_file_is_no_fault_of_the_files(classifier, images):
    config = images / 'failing.py'
    config.write_text(
        f"_base_ = {str(classifier[0])!r}\ncustom_imports = dict(imports=['vt', 'bad_input.steps'])\n"
        "model = dict(data_preprocessor=dict(type='Failing'))\n"
    )
    result = call('predict.py', config, classifier[1], 'data', cwd=images)
    assert result.returncode == 1
    assert 'Traceback' in result.stderr
    assert 'of no use' in result.stderr
