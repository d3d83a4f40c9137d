import textwrap

import pytest

SMALL = """
name: small
data:
  - name: digits
    encoder: pixels
    builtin: digits
learners:
  - name: sums
    method: noisy-sum
  - name: Top-K
    method: public
    public: [own]
    grid: {k: [1, 3]}
budgets: [rho=0.1, inf]
imbalance: [1, 10]
seeds: 2
"""


@pytest.fixture
def plan(tmp_path):
    """Write a plan; by default a small one, with parts replaced."""

    def write(text=SMALL, name="small.yaml", **replaced):
        for old, new in replaced.items():
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write
