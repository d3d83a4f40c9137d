"""`tacit fit public` goes on from the scores that an interrupted run kept."""

import numpy as np
import pytest

import tacit
from tacit.cli.main import main
from tacit.compute import threads
from tacit.learners.prototypes.scores import clipped


@pytest.fixture
def line(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    tacit.EmbeddingStore.write(
        tmp_path / "private", np.abs(rng.normal(size=(60, 9))), rng.integers(0, 3, 60), classes=3
    )
    tacit.EmbeddingStore.write(tmp_path / "public", np.abs(rng.normal(size=(100, 9))))
    monkeypatch.setattr(clipped, "TILE", 8)
    monkeypatch.setattr(clipped, "SHARD_BYTES", 1)
    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    return (
        f"fit public {tmp_path}/private --public {tmp_path}/public --budget epsilon=1 --d-min 1.2"
        f" --d-max 1.8 --out {tmp_path}/release"
    ).split()


def test_an_interrupted_fit_goes_on(line, tmp_path, monkeypatch, capsys):
    compute, tiles = clipped.TileScorer.tile, []

    def stopped(self, first):
        tiles.append(first)
        if len(tiles) == 6:
            raise KeyboardInterrupt
        return compute(self, first)

    monkeypatch.setattr(clipped.TileScorer, "tile", stopped)
    assert main(line) == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert "are kept in" in said
    assert ".release.scores" in said
    kept = tmp_path / ".release.scores"
    assert kept.stat().st_mode & 0o077 == 0
    assert len(list(kept.glob("tacit-scores/scores-*/*.npy"))) == 5
    assert not (tmp_path / "release").exists()
    assert main(line) == 0
    assert len(tiles) == 6 + 13 - 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private", "public", "release"]


def test_what_lies_in_the_folder_stays_there(line, tmp_path):
    mine = tmp_path / "scratch" / "work" / "mine.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("important", encoding="utf-8")
    assert main([*line, "--folder", str(tmp_path / "scratch")]) == 0
    assert mine.read_text(encoding="utf-8") == "important"
    assert sorted(path.name for path in (tmp_path / "scratch").iterdir()) == [".lock", "work"]
    for other in ("private/shards", "public", "release"):
        assert main([*line, "--force", "--folder", str(tmp_path / other)]) == 2
    around = [*line[:-1], str(tmp_path.with_name(f"{tmp_path.name}-release"))]
    # a folder may hold the data, and other things
    assert main([*around, "--folder", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--engine", "spark"],
        ["--arithmetic", "int4"],
        ["--jobs", "0", "--engine", "ray"],
        ["--jobs", "1000000", "--engine", "joblib"],
    ],
)
def test_bad_options(line, options, capsys, tmp_path):
    assert main([*line, *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert options[1] in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private", "public"]
