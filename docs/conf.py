"""Sphinx configuration: MyST pages, docstrings by autodoc and napoleon."""

import json
import os
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from docutils import nodes
from sphinx.ext.autosummary import import_by_name

import tacit

project = "tacit"
author = "The tacit developers"
copyright = "The tacit developers"
# the folder of these pages, on a site that holds several versions
published = os.environ.get("DOCS_VERSION")
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
html_context = {"default_mode": "auto"}  # the theme logs an error if a page states no mode
html_title = "tacit" if published else f"tacit {release}"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "logo": {
        "image_light": "_static/icon.svg",
        "image_dark": "_static/icon.svg",
        "text": html_title,
    },
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

smartquotes_action = "qe"  # two hyphens begin an option of the command line
autosummary_ignore_module_all = False  # a package describes what it exports


def _described_elsewhere():
    """Return the members of each module that have a page under a public name in api.md."""
    public_names = defaultdict(dict)
    api = Path(__file__).with_name("api.md").read_text(encoding="utf-8")
    for public_name in re.findall(r"^   (tacit\.[\w.]+)$", api, re.MULTILINE):
        _, member, _, _ = import_by_name(public_name)
        # constants and modules have none
        module = getattr(member, "__module__", None)
        if module is not None:
            public_names[module][member.__qualname__] = public_name
    return public_names


autosummary_context = {"described_elsewhere": _described_elsewhere()}

# code within a line of text
_CODE = re.compile(r"(`+[^`]*`+)")
_AS_IN = re.compile(r"\bAs in `(?:tacit\.)?([A-Z][\w.]+)`")
# a label such as "Unit: ", an entry of a list, a row of a table, an indented or an empty line
_NEW_LINE = re.compile(r"[A-Z][\w ,/()]{0,40}: |[-|\s]|$")


def _unwrapped(lines):
    """Join the lines of each paragraph, which the page wraps, but not indented lines and lists."""
    joined = []
    for line in lines:
        previous = joined[-1] if joined else ""
        prose = previous and not previous.startswith((" ", "|"))
        if prose and not _NEW_LINE.match(line):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return joined


def _plain_text(app, what, name, obj, options, lines):
    """Show docstrings as they read in the source, and turn the classes that they name into links.

    Sphinx takes the lines that this function leaves in the list `lines`.
    """
    if what == "module" and lines:
        lines[:] = _module_text(lines)
    else:
        lines[:] = [_escaped_bars(_AS_IN.sub(r"As in :py:obj:`~.\1`", line)) for line in lines]


def _module_text(lines):
    """Return the docstring of a module, with all but its first paragraph as plain text."""
    end = lines.index("") if "" in lines else len(lines)
    summary = lines[:end]
    details = lines[end:]
    if not any(details):
        return [*summary, ""]
    return [
        *summary,
        "",
        ".. code-block:: text",
        "   :class: module-text",
        "",
        *(f"   {line}" for line in _unwrapped(details)),
        "",
    ]


def _escaped_bars(line):
    """Return a line in which |x| outside of code stays as it is; to Sphinx it is a substitution."""
    parts = []
    for part in _CODE.split(line):
        is_code = part.startswith("`")
        parts.append(part if is_code else part.replace("|", r"\|"))
    return "".join(parts)


# members without an entry: the last is pydantic's; all others serve the command line and releases
INTERNAL = {
    "documented",
    "flat_parameters",
    "of_flat",
    "releasable",
    "checkpoint_folder",
    "name_rows",
    "model_config",
}


def _skip_member(app, what, name, obj, skip, options):
    """Skip members that a base class of another library defines, which are described there."""
    if what != "class":
        return None
    if name in INTERNAL:
        return True
    home = getattr(getattr(obj, "fget", obj), "__module__", None)
    if home is not None and not home.startswith("tacit"):
        return True
    return None  # as autodoc decides


# sections that moved from auto.md to measurements.md
MEASUREMENTS = (
    "when-gradient-steps-pay",
    "random-problems-that-chose-nothing",
    "two-classes",
    "other-pictures",
    "how-much-the-constants-matter",
)
# where text is now that stood on a page before, by its anchor there
MOVED = {
    "auto": {
        **{anchor: f"measurements.html#{anchor}" for anchor in MEASUREMENTS},
        "what-was-tried-and-rejected": "auto.html#where-the-constants-come-from",
        "how-auto-compares": "auto.html#where-the-constants-come-from",
    }
}


def _described_on_pages(app):
    """Return where each module, class and function of api.html is described now."""
    domain = app.env.domains.python_domain
    entries = (*domain.objects.values(), *domain.modules.values())
    return {
        entry.node_id: f"{app.builder.get_relative_uri('api', entry.docname)}#{entry.node_id}"
        for entry in entries
    }


def _redirect_old_anchors(app, pagename, templatename, context, doctree):
    """Lead anchors of text that has moved to another page to where it is now."""
    if pagename == "api":
        targets = _described_on_pages(app)
    else:
        targets = MOVED.get(pagename)
    if targets:
        script = f"const moved = {json.dumps(targets)}[location.hash.slice(1)];"
        app.add_js_file(None, body=script + " if (moved) location.replace(moved);")


# average number of characters in a cell from which a table holds text rather than figures
TEXT = 30


def _stack_tables(app, doctree, docname):
    """Mark tables of text, and those in a box `stacked`: on phones their rows become cards.

    Each cell gets the name of its column, which the style hides on wider screens.
    """
    for table in doctree.findall(nodes.table):
        body = next(table.findall(nodes.tbody))
        headers = list(table.findall(nodes.thead))
        if not headers:
            continue

        lengths = [len(entry.astext()) for entry in body.findall(nodes.entry)]
        if "stacked" in table.parent["classes"]:
            table["classes"].append("stacked")
        elif fmean(lengths) >= TEXT:
            table["classes"] += ["stacked", "text"]
        else:
            continue

        names = [entry.astext() for entry in headers[0].findall(nodes.entry)]
        for row in body.findall(nodes.row):
            for name, entry in zip(names, row.findall(nodes.entry), strict=True):
                if name and entry.children:
                    entry[0].insert(0, nodes.inline(text=f"{name}: ", classes=["column-name"]))


def setup(app):
    app.connect("doctree-resolved", _stack_tables)
    app.connect("html-page-context", _redirect_old_anchors)
    app.connect("autodoc-skip-member", _skip_member)
    app.connect("autodoc-process-docstring", _plain_text, priority=100)
