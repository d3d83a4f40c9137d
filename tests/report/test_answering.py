"""The figure of coverage against accuracy states what was measured."""

from tacit.models.coverage import Coverage
from tacit.report.answering import coverage_figure


def test_a_point_for_each_probability_with_answers():
    found = [
        Coverage(0.6, 0.8, 0.9, ()),
        Coverage(0.9, 0.4, 0.99, ()),
        Coverage(0.99, 0.0, None, ()),
    ]
    figure = coverage_figure({"with fall-back": found, "classes alone": found[1:]})
    places = [(point.series, point.x, point.y.median) for point in figure.panels[0].points]
    assert places == [
        ("with fall-back", 80.0, 90.0),
        ("with fall-back", 40.0, 99.0),
        ("classes alone", 40.0, 99.0),
    ]
    assert figure.x.limits == (0.0, 100.0)
    assert figure.y.limits == (88.0, 100.0)
    assert "from 0.6 at the right to 0.99 at the left" in figure.caption
