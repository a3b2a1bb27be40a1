"""Image data: sources, labels, class list, splits, pixels.

    spec = parse_data("emoji")          # or "products:ci", or the path of a folder or table
    data = open_data(spec)
    pixels = decode_rgb(data.train.read(0), data.train.name(0))
    report = check_data(spec)           # decodes everything; says what a run would use

Importing this package loads neither numpy nor Pillow nor pyarrow.
"""

from ringside.data.check.checking import check_data
from ringside.data.check.odd import odd_images
from ringside.data.check.report import DataReport
from ringside.data.classes import read_classes, write_classes
from ringside.data.discovery import SourceInfo, open_data, parse_data, source_names
from ringside.data.hub.files import rows_in
from ringside.data.images import ImageData, ImageSplit
from ringside.data.pixels import decode_rgb, evaluation_crop, thumbnail
from ringside.data.products.files import make_data

__all__ = [
    "DataReport",
    "ImageData",
    "ImageSplit",
    "SourceInfo",
    "check_data",
    "decode_rgb",
    "evaluation_crop",
    "make_data",
    "odd_images",
    "open_data",
    "parse_data",
    "read_classes",
    "rows_in",
    "source_names",
    "thumbnail",
    "write_classes",
]
