"""Sphinx configuration: MyST pages, docstrings by autodoc and napoleon."""

import os
import re

import tacit

project = "tacit"
author = "The tacit developers"
copyright = "The tacit developers"
published = os.environ.get("DOCS_VERSION")  # the folder of these pages, on a site that holds several versions
release = version = published or tacit.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nb_execution_mode = "off"  # tests/docs runs what the pages show
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

html_theme = "pydata_sphinx_theme"
html_title = "tacit" if published else f"tacit {release}"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "logo": {"image_light": "_static/icon.svg", "image_dark": "_static/icon.svg", "text": html_title},
    "footer_end": [],
}
if published:
    html_theme_options |= {
        "switcher": {"json_url": "../versions.json", "version_match": published},
        "check_switcher": False,  # tools/versions.py writes that file once the pages are in place
        "show_version_warning_banner": True,
        "navbar_start": ["navbar-logo", "version-switcher"],
    }
html_sidebars = {"**": ["tree"]}
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["tacit.css"]
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # one entry may describe several parameters
napoleon_custom_sections = [("Attributes", "params_style")]  # properties have entries of their own
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # parameters say their types in words

_CODE = re.compile(r"(`+[^`]*`+)")
_AS_IN = re.compile(r"\bAs in `(?:tacit\.)?([A-Z][\w.]+)`")


def _plain_text(app, what, name, obj, options, lines):
    """Docstrings are written to be read in the source: those of modules appear as they stand, and bars are bars.

    Classes that a docstring refers to become links.
    """
    if what == "module" and lines:
        first, *rest = lines
        lines[:] = [first, *(["", "::", "", *(f"    {line}" for line in rest)] if any(rest) else []), ""]
    else:
        linked = [_AS_IN.sub(r"As in :py:obj:`~.\1`", line) for line in lines]
        lines[:] = ["".join(part if part.startswith("`") else part.replace("|", r"\|") for part in _CODE.split(line))
                    for line in linked]  # fmt: skip


INTERNAL = {"documented", "flat_parameters", "of_flat", "releasable"}  # for the command line


def _skip_member(app, what, name, obj, skip, options):
    """Members that a base class of another library defines are described there."""
    if what == "class" and name in INTERNAL:
        return True
    home = getattr(getattr(obj, "fget", obj), "__module__", None)
    return True if what == "class" and home is not None and not home.startswith("tacit") else None


def setup(app):
    app.connect("autodoc-skip-member", _skip_member)
    app.connect("autodoc-process-docstring", _plain_text, priority=100)
