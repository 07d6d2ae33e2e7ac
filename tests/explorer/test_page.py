"""The explorer's page in Chromium: its numbers are the recorder's, and what is no image of a user's stays outside."""

import cv2
import numpy as np
import pytest
import torch
from apis.small_models import make, sharpen
from bad_input.hostile_images import png
from explorer.served_page import browse, explore
from mmengine.dataset import pseudo_collate

from vt import apis, record_attention
from vt.analysis.attention.token_measures import attention_entropy

pytest.importorskip('gradio', reason="the page needs Gradio: pip install 'visual-transformers[explorer]'")
SMALL = (
    'model = dict(backbone=dict(num_tokens=4, token_channels=64, relation=dict(num_heads=4), '
    'projector=dict(num_heads=2)), head=dict(in_channels=64))'
)
FIRST = 'backbone.layer4.0'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('an explorer')


@pytest.fixture(scope='module')
def classifier(folder):
    made = make(folder, 'vt-resnet18_digits', SMALL)
    sharpen(made[1])
    return made


@pytest.fixture(scope='module')
def image(folder):
    """One of a user's, of no size in particular."""
    path = folder / 'my own.png'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8))
    return path


@pytest.fixture(scope='module')
def page(folder, classifier):
    plain = make(folder, 'resnet18-half_digits')  # it has no tokens
    arguments = *classifier[:2], '--compare', *plain[:2]
    with explore(arguments, folder / 'temporary') as served, browse(f'http://127.0.0.1:{served.port}') as page:
        page.wait(lambda page: 'Shown: 0' in page.text('#status'))
        yield page


@pytest.fixture(scope='module')
def records(classifier, image):
    inferencer = apis.ClassificationInferencer(*classifier[:2])
    inputs = inferencer.model.data_preprocessor(pseudo_collate([inferencer.pipeline(str(image))]), False)['inputs']
    with torch.no_grad(), record_attention(inferencer.model) as records:
        inferencer.model(inputs, mode='tensor')
    return records


def test_a_dropped_image_shows_what_the_recorder_has(page, image, records):
    page.drop(image)
    page.wait(lambda page: page.text('#status') == 'Shown: my own.png')
    looks = records[f'{FIRST}.tokenizer'].attention[0].mean(dim=0)  # L, H, W
    relation = records[f'{FIRST}.relation'].attention[0].mean(dim=0)
    np.testing.assert_allclose(np.array(page.table('relation'))[:, 1:], relation, atol=1e-4)
    np.testing.assert_allclose(np.array(page.table('measures'))[:, 1], attention_entropy(looks), atol=1e-4)
    assert len(page.all('[data-view]')) >= 6
    assert 'This model has no part with attention' in page.text('body')
    assert len(page.all('[data-view=prediction]')) == 2


def test_all_of_it_is_done_by_keyboard(page, records):
    from selenium.webdriver import ActionChains, Keys

    def press(*keys):
        ActionChains(page.driver).send_keys(*keys).perform()

    def label():
        return page.driver.execute_script(
            'const e = document.activeElement;'
            'return e == document.body ? "" : e.getAttribute("aria-label") || (e.closest("label") || e).textContent'
        )

    def reach(name):
        for _ in range(60):
            press(Keys.TAB)
            reached.append(label())
            if name in reached[-1]:
                return
        pytest.fail(f'{name} is not among {reached}')

    reached: list[str] = []
    page.driver.execute_script('document.activeElement.blur(); window.scrollTo(0, 0)')
    reach('drop files')
    reach('humbnail')  # the images at hand
    press(Keys.TAB, Keys.ENTER)
    page.wait(lambda page: page.text('#status') == 'Shown: 0')
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).send_keys(
        Keys.ENTER
    ).perform()
    page.wait(lambda page: page.text('#status') == 'Shown: my own.png')
    reach('Head')
    press('3', Keys.ENTER)
    reduced = records[f'{FIRST}.relation'].attention[0, 2]
    page.wait(lambda page: np.allclose(np.array(page.table('relation'))[:, 1:], reduced, atol=1e-4))
    reach('Module')
    press('4.1', Keys.ENTER)
    last = records['backbone.layer4.1.relation'].attention[0, 2]
    page.wait(lambda page: np.allclose(np.array(page.table('relation'))[:, 1:], last, atol=1e-4))


def test_what_is_no_image_is_one_line_and_the_page_goes_on(page, image, folder):
    before = page.table('relation')
    (folder / 'damaged.png').write_bytes(image.read_bytes()[:200])
    (folder / 'empty.png').write_bytes(b'')
    (folder / 'wide.png').write_bytes(png(9000, 9000, colour=2, whole=False))
    page.drop(folder / 'damaged.png', folder / 'empty.png', folder / 'wide.png')
    page.wait(lambda page: 'damaged.png' in page.text('#status [role=alert]'))
    assert page.text('#status') == (
        'damaged.png is no image that can be read; empty.png is not an image that can be read; '
        'wide.png has more than 64 million pixels: make it smaller'
    )
    with (folder / 'huge.png').open('wb') as file:
        file.truncate(40_000_000)
    page.drop(folder / 'huge.png')
    page.wait(lambda page: 'exceed the maximum' in page.text('body'))
    assert page.table('relation') == before
    page.drop(image)
    page.wait(lambda page: page.text('#status') == 'Shown: my own.png')


def test_an_event_takes_uploads_only_and_nothing_is_fetched(page, image):
    upload = page.driver.execute_async_script(
        """const [path, done] = arguments;
        const event = window.gradio_config.dependencies.find(each => each.targets.some(t => t[1] == 'upload'));
        const file = [{path, orig_name: 'a.png', meta: {_type: 'gradio.FileData'}}];
        const data = event.inputs.map((id, index) => index ? null : file);
        const body = JSON.stringify({data, fn_index: event.id, session_hash: 'other'});
        const options = {method: 'POST', headers: {'Content-Type': 'application/json'}, body};
        await fetch('/gradio_api/queue/join', options);
        done(await (await fetch('/gradio_api/queue/data?session_hash=other')).text());""",
        str(image),
    )
    assert '"success":false' in upload
    assert 'Shown' not in upload
    fetched = page.driver.execute_script('return performance.getEntriesByType("resource").map(each => each.name)')
    assert fetched
    assert all(name.startswith((page.address, 'data:')) for name in fetched), fetched


def test_a_small_screen_shows_all_of_its_width(page):
    size = dict(width=390, height=844, deviceScaleFactor=1, mobile=True)
    page.driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', size)
    width = page.driver.execute_script(
        'return [document.documentElement.scrollWidth, ...[...document.querySelectorAll(".view")].map('
        'each => each.getBoundingClientRect().right)]'
    )
    page.driver.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    assert max(width) <= 390
    assert len(width) > 6
