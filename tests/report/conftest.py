"""A browser that the tests of a file share."""

import pytest

from report.browser import pages


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pages(tmp_path_factory.mktemp("profile")) as page:
        yield page
