"""What the files about the project say, they say alike: versions of Python and of tacit, targets of
make, files.
"""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import tacit
from messages import lacking

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMING_TARGETS = [*WORKFLOWS, ROOT / ".pre-commit-config.yaml", ROOT / "CONTRIBUTING.md"]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = set(
    re.findall(
        r"^([a-z][a-z-]*(?: [a-z-]+)*):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M
    )
)
PERMISSIONS = {
    "publish": {"contents": "write"},
    "attest": {"id-token": "write", "attestations": "write"},
    "upload": {"id-token": "write"},
}
"""What jobs of these names may do beyond reading."""
MAKE = re.compile(r"(?:^|run: |entry: |`|&& )make ([a-z][a-z-]*)", re.M)
release = runpy.run_path(str(ROOT / "tools" / "release.py"))
lowest = runpy.run_path(str(ROOT / "tools" / "lowest.py"))


def steps(workflow):
    """The steps of all jobs of a workflow."""
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_the_pythons_that_are_tested_are_those_that_are_stated():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))[
        "jobs"
    ]
    tested = jobs["tests"]["strategy"]["matrix"]["python"]
    stated = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert tested == stated
    assert PROJECT["requires-python"] == f">={tested[0]}"
    assert f"Python {tested[0]} to {tested[-1]}" in (ROOT / "docs" / "install.md").read_text(
        encoding="utf-8"
    )
    others = {
        step["with"]["python-version"]
        for workflow in WORKFLOWS
        for step in steps(workflow)
        if step.get("uses", "").startswith("actions/setup-python@")
    } - {"${{ matrix.python }}"}
    assert others == {tested[0]}  # constraints.txt was resolved for it


def test_the_workflow_runs_on_linux_and_macos():
    matrix = yaml.safe_load(
        (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    )["jobs"]
    for job in ("tests", "wheels"):
        assert matrix[job]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest"]


@pytest.mark.parametrize("path", NAMING_TARGETS, ids=lambda path: path.name)
def test_every_target_of_make_that_a_file_names_exists(path):
    named = set(MAKE.findall(path.read_text(encoding="utf-8")))
    assert named
    assert named <= {name for line in TARGETS for name in line.split()}


def test_the_workflow_lints_tests_builds_pages_and_wheels():
    named = {
        name
        for workflow in WORKFLOWS
        for name in MAKE.findall(workflow.read_text(encoding="utf-8"))
    }
    assert named == {
        "lint",
        "test",
        "test-all",
        "lowest",
        "newest",
        "coverage",
        "docs",
        "wheels",
        "release",
    }


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_alone_and_use_pinned_actions(workflow):
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    for name, job in content["jobs"].items():
        assert job.get("permissions", {}) == PERMISSIONS.get(name, {})
    # a tag can be moved to other code, a commit cannot; the comment says which tag it was
    for line in workflow.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
    # nothing that a stranger may name, such as a branch, is pasted into a shell
    for step in steps(workflow):
        assert "${{" not in step.get("run", ""), step


def test_the_citation_states_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == tacit.__version__ == release["version"](ROOT)
    assert citation["license"] == PROJECT["license"]
    # the distribution has a longer name, since `tacit` is another project on PyPI
    assert f"{citation['title']}-dp" == PROJECT["name"]
    assert citation["abstract"] == f"{PROJECT['description']}."
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in PROJECT["authors"]
    ]
    assert citation["keywords"] == PROJECT["keywords"]


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.name != "config.yml"], ids=lambda path: path.name
)
def test_issue_forms_are_complete(form):
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(content)
    fields = [part for part in content["body"] if part["type"] != "markdown"]
    assert fields
    assert len({part["id"] for part in fields}) == len(fields)
    assert all(part["attributes"]["label"] for part in fields)


def test_bugs_and_broken_guarantees_point_to_private_reports():
    for name in ("bug.yml", "broken_guarantee.yml"):
        assert "(../blob/HEAD/SECURITY.md)" in (
            ROOT / ".github" / "ISSUE_TEMPLATE" / name
        ).read_text(encoding="utf-8")
    assert "private vulnerability report" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_changelog_has_the_known_sections_in_order():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    headings = [line for line in lines if re.match(r"#{1,3} ", line)]
    assert headings[:2] == ["# Changelog", "## [Unreleased]"]
    order = [
        "### Added",
        "### Changed",
        "### Deprecated",
        "### Removed",
        "### Fixed",
        "### Security",
    ]
    for part in "\n".join(headings[1:]).split("## [")[1:]:
        title, *kinds = part.splitlines()
        assert re.fullmatch(r"Unreleased\]|\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", title)
        assert kinds == [kind for kind in order if kind in kinds]


def listed(site):
    """The versions of a site, once they are listed, and where its start page leads."""
    command = [
        sys.executable,
        ROOT / "tools" / "versions.py",
        site,
        "--url",
        "https://me.example/tacit",
    ]
    subprocess.run(command, check=True)
    start = re.search(r"url=([^\"]*)", (site / "index.html").read_text(encoding="utf-8"))[1]
    return json.loads((site / "versions.json").read_text(encoding="utf-8")), start


def test_pages_of_releases_are_listed_beside_those_in_development(tmp_path):
    dev = {"version": "dev", "url": "https://me.example/tacit/dev/"}
    assert listed(tmp_path)[0] == []
    (tmp_path / "v9.9.9").touch()
    (tmp_path / "dev").mkdir()
    assert listed(tmp_path) == ([dev], "dev/")
    for name in ("v0.2.0", "v0.10.0", "v0.9.1", "assets"):
        (tmp_path / name).mkdir()
    newest, *older = (
        {"version": name, "url": f"https://me.example/tacit/{name}/"}
        for name in ("v0.10.0", "v0.9.1", "v0.2.0")
    )
    newest |= {"name": "v0.10.0 (stable)", "preferred": True}
    assert listed(tmp_path) == ([dev, newest, *older], "v0.10.0/")


def project(
    root,
    *,
    version="1.2.0",
    changelog="## [1.2.0] - 2027-01-31\n\n### Added\n\n- A line.\n",
    citation=None,
):
    """The files of a small project whose tag v1.2.0 may be released."""
    (root / "src" / "tacit").mkdir(parents=True)
    for number in ("1.1.0", version):
        (root / "tests" / "formats" / "written" / number / "release").mkdir(parents=True)
    (root / "src" / "tacit" / "version.py").write_text(
        f'__version__ = "{version}"\n', encoding="utf-8"
    )
    (root / "CHANGELOG.md").write_text(
        f"# Changelog\n\n{changelog}\n## [1.1.0] - 2027-01-01\n\n- Old.\n", encoding="utf-8"
    )
    citation = 'version: 1.2.0\ndate-released: "2027-01-31"\n' if citation is None else citation
    (root / "CITATION.cff").write_text(citation, encoding="utf-8")
    return root


def test_a_tag_whose_version_all_files_state_is_released_with_its_notes(tmp_path):
    root = project(tmp_path)
    assert release["problems"](root, "v1.2.0") == []
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release["section"](text, "1.2.0") == (
        "2027-01-31",
        "### Added\n\n- A line.\n",
    )


@pytest.mark.parametrize(
    ("tag", "files", "said"),
    [
        ("1.2.0", {}, ("'1.2.0'", "src/tacit/version.py", "tag v1.2.0")),
        ("v1.2.0", {"version": "1.2.1"}, ("'v1.2.0'", "src/tacit/version.py", "tag v1.2.1")),
        (
            "v1.2.0",
            {"changelog": "## [Unreleased]\n"},
            ("CHANGELOG.md", "'## [1.2.0] - YYYY-MM-DD'", "'## [Unreleased]'"),
        ),
        (
            "v1.2.0",
            {"citation": "version: 1.2.0\n"},
            ("CITATION.cff", 'date-released: "2027-01-31"'),
        ),
        (
            "v1.2.0",
            {"citation": 'date-released: "2027-01-31"\n'},
            ("CITATION.cff", "version: 1.2.0"),
        ),
    ],
    ids=["tag", "version", "changelog", "day", "citation"],
)
def test_what_hinders_a_release_is_said(tmp_path, tag, files, said):
    (problem,) = release["problems"](project(tmp_path, **files), tag)
    assert not lacking(problem, *said)


def test_every_library_is_pinned_to_its_lower_bound():
    pins = lowest["bounds"](ROOT)
    assert pins["numpy"] == "2.0.1"  # a library of tacit
    assert pins["open-clip-torch"] == "3.2"  # of an extra, by its normalized name
    assert pins["hatchling"] == "1.27"  # of the build
    names = {re.split("[<>=]", line)[0].lower() for line in PROJECT["dependencies"]}
    assert names <= set(pins)


def test_a_requirement_without_a_lower_bound_or_with_two_is_refused(tmp_path):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for old, new in (('"scipy>=1.13"', '"scipy"'), ('"optuna>=4.0"]', '"scipy>=1.12"]')):
        assert old in text
        (tmp_path / "pyproject.toml").write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(SystemExit, match="scipy"):
            lowest["bounds"](tmp_path)


def test_what_is_not_installed_at_its_lower_bound_is_named():
    installed = version("numpy")
    assert lowest["differences"]({"numpy": installed}) == []
    newer, absent = lowest["differences"]({"numpy": "1.0", "no-such-library": "1.0"})
    assert newer == f"numpy {installed} is installed; its lower bound is 1.0"
    assert absent == "no-such-library is not installed; its lower bound is 1.0"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("5.0.0", "5.0", True),
        ("2.13.0+cpu", "2.13", True),
        ("5.10", "5.1", False),
        ("10", "1", False),
    ],
)
def test_zeros_at_the_end_of_a_version_do_not_count(one, other, same):
    assert lowest["same_version"](one, other) is same


def test_a_version_whose_files_are_not_kept_is_not_released(tmp_path):
    root = project(tmp_path)
    (root / "tests" / "formats" / "written" / "1.2.0" / "release").rmdir()
    (problem,) = release["problems"](root, "v1.2.0")
    assert "python tools/written.py" in problem
