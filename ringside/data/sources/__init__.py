"""Where pictures come from: one module per source, found by `ringside.data.discovery`.

A source module has `NAME`, `TITLE`, `SYNTHETIC`, `DEFAULT_IMAGE_SIZE` (pixels) and
`open_source(spec: DataSpec) -> ImageData`. Two things are optional: `PROFILES`, the default image
size per profile name with the default profile first, and `claims_folder(path: Path) -> bool` for
a source that recognises folders of its own.
"""
