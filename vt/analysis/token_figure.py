"""Pictures of where visual tokens look."""

from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import interpolate

CELL = 1.25  # inches


def draw_attention(images: Tensor, attention: Tensor, titles: list[str]) -> Figure:
    """A row an image: the image, then one column a token with the token's attention laid over it.

    Brightness is the attention on a pixel relative to the token's strongest pixel.

    Args:
        images: RGB in 0 to 1, ``(N, 3, height, width)``.
        attention: maps of a tokenizer, ``(N, heads, L, H, W)``; heads are averaged.
        titles: one for each image.
    """
    maps = attention.mean(dim=1)  # N, L, H, W
    maps = interpolate(maps, images.shape[-2:], mode='bicubic').clamp(min=0)  # N, L, height, width
    maps = maps / maps.amax(dim=(-2, -1), keepdim=True)
    rows, columns = maps.shape[0], 1 + maps.shape[1]
    figure = Figure(figsize=(CELL * columns, CELL * rows + 0.5), layout='constrained')
    axes = figure.subplots(rows, columns, squeeze=False)
    for image, row_maps, title, row in zip(images, maps, titles, axes):
        pixels = image.permute(1, 2, 0).numpy()
        row[0].imshow(pixels)
        row[0].set_ylabel(title, fontsize=9)
        for token, (token_map, cell) in enumerate(zip(row_maps, row[1:])):
            cell.imshow(pixels.mean(axis=-1), cmap='gray', vmin=0, vmax=1)
            cell.imshow(token_map.numpy(), cmap='inferno', alpha=0.6, vmin=0, vmax=1)
            if row is axes[0]:
                cell.set_title(f'token {token + 1}', fontsize=9)
    axes[0][0].set_title('image', fontsize=9)
    for cell in axes.flat:
        cell.set(xticks=[], yticks=[])
        cell.spines[:].set_visible(False)
    figure.suptitle('Where each visual token looks', fontsize=11)
    return figure
