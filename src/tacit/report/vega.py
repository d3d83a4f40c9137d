"""Vega, which draws charts: its JavaScript for pages, and charts as files, both from vl-convert.

vl-convert needs no browser, no network and no fonts of the system.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tacit.compute.extras import check_installed

FORMATS = ("pdf", "svg", "png")

# resolution of a PNG
PIXELS_PER_INCH = 200


@cache
def libraries() -> str:
    """Return Vega and its companions as JavaScript, with `vegaEmbed` for the scripts of a page."""
    return str(_vl_convert().javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def render(chart: dict[str, Any], format: str) -> bytes:
    """Return a file of one of FORMATS with a Vega-Lite chart."""
    vl_convert = _vl_convert()
    if format == "svg":
        return str(vl_convert.vegalite_to_svg(chart)).encode()
    if format == "png":
        return bytes(vl_convert.vegalite_to_png(chart, ppi=PIXELS_PER_INCH))
    return bytes(vl_convert.vegalite_to_pdf(chart))


def _vl_convert() -> Any:
    check_installed("vl_convert")
    import vl_convert

    return vl_convert
