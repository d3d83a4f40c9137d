"""Optional libraries that several modules use, each imported by one module here, on first use.

A function of each module returns the library, and raises the error that names its extra where it is
missing. Contracts of import-linter in `pyproject.toml` hold every optional library to one module; a
library that one module uses is imported there.
"""
