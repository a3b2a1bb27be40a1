"""A copy of a data set in smaller pictures, so that training decodes less or nothing."""
