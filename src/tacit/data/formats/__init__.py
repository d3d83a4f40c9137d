"""Readers of file formats, one module each, with a function `read`."""
