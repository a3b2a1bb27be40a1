"""A folder of a person's own images: what lies in it and what its metadata file says."""
