"""Releases that hubs and signers have touched: they load, and every byte that was signed counts."""

import os
import re
import shutil
import subprocess
from hashlib import sha256

import numpy as np
import pytest
import yaml

import tacit
from messages import lacking, stating
from tacit.cli.main import main
from tacit.errors import InputError, ReleaseError
from tacit.releases import publishing
from tacit.releases.publishing import publish, readme, upload
from tacit.releases.reading import NEVER_OPENED
from tacit.releases.release import Release, Utility
from tacit.releases.signing import check_signature

ROWS = np.random.default_rng(0).normal(size=(60, 6))
LABELS = np.arange(60) % 3
LEARNER = tacit.NoisySumPrototypes(classes=3).fit(ROWS, LABELS)
RELEASE = Release.of(LEARNER, name="three: *blobs*")
UTILITY = Utility(
    test_set="blobs, held out",
    rows=400,
    accuracy=0.9,
    balanced_accuracy=0.88,
    per_class={"0": 0.95},
    interval=(0.84, 0.91),
    interval_of="balanced accuracy",
    minority_accuracy=0.5,
)
FILES = ["CARD.md", "README.md", "arrays.safetensors", "release.json"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key pair, another one, and a key of another kind, made as the docs say."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("", "other-"):
        private, public = folder / f"{name}key.pem", folder / f"{name}public.pem"
        generate = [
            "openssl",
            "ecparam",
            "-name",
            "prime256v1",
            "-genkey",
            "-noout",
            "-out",
            private,
        ]
        subprocess.run(generate, check=True, capture_output=True)
        subprocess.run(
            ["openssl", "ec", "-in", private, "-pubout", "-out", public],
            check=True,
            capture_output=True,
        )
    subprocess.run(
        ["openssl", "genrsa", "-out", folder / "rsa.pem"], check=True, capture_output=True
    )
    return folder


@pytest.fixture
def signed(keys, tmp_path):
    return publish(RELEASE, tmp_path / "signed", key=keys / "key.pem")


def header(folder):
    _, text, card = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(text), card


def cloned(folder):
    """What git and a hub's client add to a folder."""
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs diff=lfs merge=lfs -text\n")
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".cache" / "huggingface").mkdir(parents=True)
    (folder / ".cache" / "huggingface" / "CACHEDIR.TAG").write_text("")
    return folder


def test_a_published_release_loads_and_verifies(tmp_path):
    folder = publish(RELEASE, tmp_path / "hub", license="apache-2.0")
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert np.array_equal(Release.load(folder).verify().predict(ROWS), LEARNER.predict(ROWS))
    stated, card = header(folder)
    assert stated == {
        "library_name": "tacit",
        "pipeline_tag": "tabular-classification",
        "tags": ["differential-privacy", "embeddings"],
        "license": "apache-2.0",
    }
    title, items = (folder / "CARD.md").read_text(encoding="utf-8").split("\n\n", 1)
    shown_title, plain = card.strip().split("\n\n", 1)
    assert shown_title == title
    assert plain.endswith(items.strip())


def test_a_readme_opens_in_plain_words_and_says_who_signs(tmp_path, keys):
    folder = publish(RELEASE.with_utility(UTILITY), tmp_path / "hub", key=keys / "key.pem")
    _, card = header(folder)
    plain, formal = card.split("## The guarantee in full")
    signer = check_signature(folder, keys / "public.pem")
    for fact in (
        "**What it does.** It assigns each record one of 3 classes.",
        "**Classes.** 0, 1, 2.",
        "90.0 of 100 test records get the right class",
        "blobs, held out",
        f"by the key {signer}",
        "at most 69.2 right",
    ):
        assert fact in plain
    assert not re.search("epsilon|P\\[|data sets D", plain)
    assert formal.strip().startswith("For any two data sets D and D'")


def test_texts_of_a_release_are_no_markup_of_its_readme():
    names = ["<b>cat", "[dog](http://example.com)"]
    learner = tacit.NoisySumPrototypes(classes=names).fit(np.eye(2), names)
    hostile = Release.of(learner, name="<script>", description="**bold** `code`")
    plain, _ = readme(hostile.document).split("## The guarantee in full")
    for text in ("\\<script>", "\\<b>cat, [dog\\](http", "\\*\\*bold\\*\\* \\`code\\`"):
        assert text in plain


def test_the_header_states_what_was_measured_as_the_hub_reads_it(tmp_path):
    from huggingface_hub import ModelCard

    folder = publish(RELEASE.with_utility(UTILITY), tmp_path / "hub")
    data = ModelCard.load(folder / "README.md").data
    assert (data.library_name, data.pipeline_tag, data.license) == (
        "tacit",
        "tabular-classification",
        None,
    )
    assert data.model_name == "three: *blobs*"
    measured = {result.metric_type: result.metric_value for result in data.eval_results}
    assert measured == {"accuracy": 0.9, "balanced_accuracy": 0.88, "minority_accuracy": 0.5}
    assert {result.dataset_name for result in data.eval_results} == {"blobs, held out"}


def test_a_clone_of_a_hub_loads_and_verifies(signed, keys):
    (cloned(signed) / "LICENSE").write_text("as you like")
    assert Release.load(signed).verify().classes.tolist() == [0, 1, 2]
    with pytest.raises(ReleaseError, match=stating("'signed'", "LICENSE")):
        check_signature(signed, keys / "public.pem")
    (signed / "LICENSE").unlink()
    assert len(check_signature(signed, keys / "public.pem")) == 64


def test_a_link_to_a_signed_folder_is_followed(signed, keys, tmp_path):
    (tmp_path / "link").symlink_to(signed)
    assert check_signature(tmp_path / "link", keys / "public.pem") == check_signature(
        signed, keys / "public.pem"
    )


def test_what_is_never_opened_may_be_anything(tmp_path):
    folder = publish(RELEASE, tmp_path / "hub")
    (folder / "README.md").unlink()
    for name in NEVER_OPENED:
        (folder / name).symlink_to("/nowhere")
    Release.load(folder).verify()


@pytest.mark.parametrize(
    "name", ["model.pkl", "readme.md", ".gitignore", "model.sig.py", ".github"]
)
def test_anything_else_is_still_refused(tmp_path, name):
    folder = publish(RELEASE, tmp_path / "hub")
    (folder / name).write_text("x")
    with pytest.raises(ReleaseError, match=stating(f"'{name}'", "release")):
        Release.load(folder)


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_byte_of_a_signed_file_is_found_by_its_name(signed, keys, name):
    data = bytearray((signed / name).read_bytes())
    data[len(data) // 2] ^= 1
    (signed / name).write_bytes(data)
    with pytest.raises(ReleaseError, match=stating(f"'{name}'", "Hash mismatch")) as error:
        check_signature(signed, keys / "public.pem")
    assert "\n" not in str(error.value)


def test_missing_and_further_files_are_found(signed, keys):
    (signed / "README.md").rename(signed / "other.md")
    with pytest.raises(ReleaseError, match=stating("other.md", "README.md")):
        check_signature(signed, keys / "public.pem")


def test_a_signature_moves_with_its_folder_and_to_no_other(signed, keys, tmp_path):
    moved = signed.rename(tmp_path / "elsewhere")
    check_signature(moved, keys / "public.pem")
    other = publish(Release.of(LEARNER, name="other"), tmp_path / "other")
    shutil.copy(moved / "model.sig", other)
    with pytest.raises(ReleaseError, match="Hash mismatch for 'CARD.md'"):
        check_signature(other, keys / "public.pem")


def test_a_signature_says_nothing_of_the_machine_that_made_it(signed, tmp_path):
    import base64
    import json

    payload = json.loads((signed / "model.sig").read_bytes())["dsseEnvelope"]["payload"]
    statement = json.loads(base64.b64decode(payload))
    assert statement["subject"][0]["name"] == "signed"
    assert [file["name"] for file in statement["predicate"]["resources"]] == FILES
    assert "/" not in "".join(statement["predicate"]["serialization"]["ignore_paths"])


def test_a_missing_signature_another_key_and_no_key_are_refused(signed, keys, tmp_path):
    with pytest.raises(ReleaseError, match=stating("model.sig", "another key", "other-public.pem")):
        check_signature(signed, keys / "other-public.pem")
    os.mkfifo(keys / "fifo.pem")
    (keys / "text.pem").write_text("hello")
    curve = [
        "openssl",
        "ecparam",
        "-name",
        "secp256k1",
        "-genkey",
        "-noout",
        "-out",
        keys / "k1.pem",
    ]
    subprocess.run(curve, check=True, capture_output=True)
    subprocess.run(
        ["openssl", "rsa", "-in", keys / "rsa.pem", "-pubout", "-out", keys / "rsa-public.pem"],
        check=True,
    )
    alike = {
        "absent.pem": "No such file or directory",
        "fifo.pem": "plain file",
        "text.pem": "parsed",
    }
    of_public = {
        "key.pem": "is a private key",
        "rsa-public.pem": "(RSA)",
    }
    for name, fault in (alike | of_public).items():
        with pytest.raises(
            InputError,
            match=stating(name, fault, "P-256", "public key, docs/"),
        ):
            check_signature(signed, keys / name)
    of_private = {
        "public.pem": "is a public key",
        "rsa.pem": "(RSA)",
        "k1.pem": "secp256k1",
    }
    for name, fault in (alike | of_private).items():
        with pytest.raises(
            InputError,
            match=stating(name, fault, "unencrypted", "P-256", "private key"),
        ):
            publish(RELEASE, tmp_path / "never", key=keys / name)
    assert not (tmp_path / "never").exists()
    (signed / "model.sig").unlink()
    with pytest.raises(ReleaseError, match=r"has no signature \(model.sig\)"):
        check_signature(signed, keys / "public.pem")


@pytest.mark.parametrize("forged", [b"", b"{}", b"\xff", b"[" * 10**5, b'{"mediaType": 3}'])
def test_what_is_no_signature_is_refused_in_one_line(signed, keys, forged):
    (signed / "model.sig").write_bytes(forged)
    with pytest.raises(ReleaseError, match=stating("model.sig", "public.pem", "valid")) as error:
        check_signature(signed, keys / "public.pem")
    assert "\n" not in str(error.value)


def test_a_signature_that_names_a_key_that_did_not_make_it_is_refused(signed, keys):
    ours, others = (
        sha256((keys / name).read_bytes()).hexdigest()
        for name in ("public.pem", "other-public.pem")
    )
    forged = (signed / "model.sig").read_text().replace(ours, others)
    assert others in forged
    (signed / "model.sig").write_text(forged)
    with pytest.raises(
        ReleaseError, match=stating("model.sig", "other-public.pem", "InvalidSignature")
    ):
        check_signature(signed, keys / "other-public.pem")


@pytest.mark.parametrize("name", ["model.sig", "CARD.md", "further"])
def test_links_and_other_files_are_named(signed, keys, tmp_path, name):
    if (signed / name).exists():
        (signed / name).rename(tmp_path / name)
    (signed / name).symlink_to(tmp_path / name)
    with pytest.raises(ReleaseError, match=stating(name, "link", "signature")):
        check_signature(signed, keys / "public.pem")
    (signed / name).unlink()
    os.mkfifo(signed / name)
    with pytest.raises(ReleaseError, match=stating(name, "link", "signature")):
        check_signature(signed, keys / "public.pem")


def test_a_signature_that_is_too_large_is_not_parsed(signed, keys):
    (signed / "model.sig").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(ReleaseError, match=stating("model.sig", "1048577 bytes", "1048576")):
        check_signature(signed, keys / "public.pem")


def test_an_encrypted_key_is_refused(keys, tmp_path):
    encrypted = tmp_path / "encrypted.pem"
    encrypt = [
        "openssl",
        "ec",
        "-in",
        keys / "key.pem",
        "-aes128",
        "-passout",
        "pass:x",
        "-out",
        encrypted,
    ]
    subprocess.run(encrypt, check=True, capture_output=True)
    with pytest.raises(InputError, match=stating("encrypted", "PEM")):
        publish(RELEASE, tmp_path / "never", key=encrypted)


def test_only_releases_are_replaced_and_no_signature_by_none(signed, keys):
    with pytest.raises(InputError, match="exists; choose another name"):
        publish(RELEASE, signed)
    with pytest.raises(InputError, match=stating("--sign KEY", "model.sig")):
        publish(RELEASE, signed, force=True)
    assert check_signature(signed, keys / "public.pem")
    publish(RELEASE, signed, force=True, key=keys / "other-key.pem")
    assert check_signature(signed, keys / "other-public.pem")
    (signed / "model.sig").unlink()
    publish(RELEASE, signed, force=True)
    assert sorted(file.name for file in signed.iterdir()) == FILES
    with pytest.raises(InputError, match=stating("not replaced")):
        publish(RELEASE, cloned(signed), force=True)
    with pytest.raises(InputError, match=stating("not replaced")):
        RELEASE.save(signed, force=True)
    assert (signed / ".git" / "HEAD").exists()


@pytest.mark.parametrize("name", ["README.md", "model.sig"])
def test_a_folder_without_a_release_or_with_other_than_plain_files_is_not_replaced(tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("mine")
    with pytest.raises(InputError, match=stating("not replaced")):
        publish(RELEASE, folder, force=True)
    (folder / name).unlink()
    RELEASE.save(folder, force=True)
    (folder / name).mkdir()
    (folder / name / "mine").touch()
    with pytest.raises(InputError, match=stating("not replaced")):
        publish(RELEASE, folder, force=True)
    assert (folder / name / "mine").exists()


def test_what_is_not_for_release_is_not_published(tmp_path):
    research = Release.of(
        tacit.NoisySumPrototypes(classes=3, noise="research", random_state=0).fit(ROWS, LABELS)
    )
    with pytest.raises(ReleaseError, match="NOT FOR RELEASE"):
        publish(research, tmp_path / "hub")
    changed = Release(
        RELEASE.document, RELEASE.arrays, RELEASE.sha256, RELEASE.card_text + "more", "here"
    )
    with pytest.raises(ReleaseError, match=stating("CARD.md", "release.json", "says")):
        publish(changed, tmp_path / "hub")
    with pytest.raises(InputError, match=r"license='\\n' must be the identifier of a license"):
        publish(RELEASE, tmp_path / "hub", license="\n")
    assert not list(tmp_path.iterdir())


class Hub:
    """What HfApi is asked to do."""

    def __init__(self, fault=None):
        self.fault, self.calls = fault, []

    def __call__(self):
        return self

    def create_repo(self, *args, **kwargs):
        if self.fault is not None:
            raise self.fault
        self.calls.append(("create", args, kwargs))

    def upload_folder(self, *, folder_path, **kwargs):
        self.calls.append(("upload", sorted(file.name for file in folder_path.iterdir()), kwargs))


def test_a_repository_gets_the_published_files(tmp_path, monkeypatch, capsys, keys):
    hub = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", hub)
    RELEASE.save(tmp_path / "release")
    assert (
        main(
            [
                "publish",
                str(tmp_path / "release"),
                "--repo",
                "me/blobs",
                "--sign",
                str(keys / "key.pem"),
            ]
        )
        == 0
    )
    assert hub.calls == [
        ("create", ("me/blobs",), {"exist_ok": True}),
        (
            "upload",
            sorted([*FILES, "model.sig"]),
            {"repo_id": "me/blobs", "delete_patterns": ["model.sig"]},
        ),
    ]
    assert capsys.readouterr().out.startswith(
        "repository me/blobs: the release, and README.md for model hubs\nSigned by"
    )


def test_a_hub_that_refuses_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", Hub(OSError("401\nUnauthorized")))
    with pytest.raises(InputError, match=stating("me/x", "401 Unauthorized", "hf auth")):
        upload(tmp_path, "me/x")


def test_the_command_line_says_who_signed(tmp_path, keys, capsys):
    release, hub = str(RELEASE.save(tmp_path / "release")), str(tmp_path / "hub")
    assert main(["publish", release]) == 2
    assert not lacking(capsys.readouterr().err, "--to FOLDER")
    assert main(["publish", release, "--to", hub, "--sign", str(keys / "key.pem")]) == 0
    said = capsys.readouterr().out
    fingerprint = sha256((keys / "public.pem").read_bytes()).hexdigest()
    assert f"Signed by the key {fingerprint}\nREADME.md states no license" in said
    assert main(["inspect", hub, "--key", str(keys / "public.pem")]) == 0
    assert f"{hub}: all files are signed by the key {fingerprint}\n" in capsys.readouterr().out
    assert main(["inspect", hub]) == 0
    assert not lacking(capsys.readouterr().out, "signature", "--key")
    assert main(["inspect", release]) == 0
    assert not lacking(capsys.readouterr().out, "not signed")
    assert main(["inspect", release, "--key", str(keys / "public.pem")]) == 2
    assert "has no signature (model.sig)" in capsys.readouterr().err


def test_a_failure_to_sign_leaves_nothing(tmp_path, monkeypatch, keys):
    def fails(*_):
        raise InputError("no")

    monkeypatch.setattr(publishing, "sign", fails)
    with pytest.raises(InputError, match="no"):
        publish(RELEASE, tmp_path / "hub", key=keys / "key.pem")
    assert not list(tmp_path.iterdir())


def test_labels_of_public_rows_are_published_as_a_data_set(tmp_path, monkeypatch, capsys, keys):
    hub = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", hub)
    labels = tacit.label_public(RELEASE, ROWS)
    labels.save(tmp_path / "labels")
    to = tmp_path / "published"
    words = ["publish", str(tmp_path / "labels"), "--to", str(to), "--license", "cc-by-4.0"]
    assert main([*words, "--repo", "me/labels", "--sign", str(keys / "key.pem")]) == 0
    assert "repository me/labels: labels, and README.md" in capsys.readouterr().out
    files = ["CARD.md", "README.md", "labels.csv", "labels.json", "model.sig", "release.json"]
    assert hub.calls == [
        ("create", ("me/labels",), {"exist_ok": True, "repo_type": "dataset"}),
        (
            "upload",
            files,
            {"repo_id": "me/labels", "delete_patterns": ["model.sig"], "repo_type": "dataset"},
        ),
    ]

    stated, card = header(to)
    assert stated["license"] == "cc-by-4.0"
    assert stated["configs"] == [{"config_name": "default", "data_files": "labels.csv"}]
    plain, formal = card.split("## The guarantee in full\n\n")
    assert formal.strip() == labels.card().strip().split("\n\n", 1)[1]
    signer = check_signature(to, keys / "public.pem")
    for fact in ("60 of 60 public rows", "69.2 right", "the labels cost no more", signer):
        assert fact in plain
    tacit.PublicLabels.load(cloned(to)).verify()
    inspect = ["inspect", str(to), "--key", str(keys / "public.pem")]
    assert main(inspect) == 0
    assert "all files are signed by the key" in capsys.readouterr().out
    with (to / "README.md").open("a") as file:
        file.write("more")
    assert main(inspect) == 2
    assert "not what was signed" in capsys.readouterr().err

    # neither kind replaces the other, and a signed folder is not replaced by one that is not
    with pytest.raises(InputError, match="holds something else"):
        publish(RELEASE, to, force=True)
    shutil.rmtree(to / ".git")
    shutil.rmtree(to / ".cache")
    (to / ".gitattributes").unlink()
    with pytest.raises(InputError, match="is signed and would be replaced"):
        publish(labels, to, force=True)
    assert publish(labels, to, force=True, key=keys / "key.pem") == to
