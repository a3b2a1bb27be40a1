"""Where pictures come from: one module per source, found by `ringside.data.discovery`.

A source module has `NAME`, `TITLE`, `SYNTHETIC`, `DEFAULT_IMAGE_SIZE` (pixels) and
`open_source(spec: DataSpec) -> ImageData`. The rest is optional: `PROFILES`, the default image
size per profile name with the default profile first (or `check_profile(text: str | None)`, which
refuses what it does not understand), and `claims_folder(path: Path) -> bool` for a source that
recognises folders of its own. Three more for sources that no name alone opens: `BY_NAME = False`,
`spec_of(text: str) -> DataSpec | None` for texts of its own, and `READS_TABLES = True` where
a person may say what separates the labels of a cell. `num_training(spec: DataSpec, enough: int) ->
int | None` counts the training pictures before a run starts, where that takes a moment, and
`task_of(spec: DataSpec) -> Task | None` tells then whether pictures have one class or any number.
"""
