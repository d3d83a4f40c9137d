"""tacit.encode and tacit.Encoder."""

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import tacit
from messages import stating
from tacit.errors import InputError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)


def flat(batch):
    return np.asarray(batch).reshape(len(batch), -1) / 255


def test_pictures_in_every_form(onnx_model, tmp_path):
    encoder = f"onnx:{onnx_model}"
    wanted = tacit.encode(PIXELS, encoder)
    assert (wanted.shape, wanted.dtype) == ((12, 12), np.float32)
    paths = []
    for number, own in enumerate(PIXELS):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(own).save(paths[-1])
    forms = [
        list(PIXELS), paths, [str(path) for path in paths], [path.read_bytes() for path in paths],
        [Image.open(path) for path in paths], PIXELS.transpose(0, 3, 1, 2),
    ]  # fmt: skip
    for form in forms:
        assert (tacit.encode(form, encoder) == wanted).all()
    assert np.allclose(tacit.encode(PIXELS, encoder, batch=5, workers=1), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ([], "no records"),
        (PIXELS.astype(float), "give pixels as bytes"),
        (PIXELS[0, 0], "has shape"),
        ([object()], "record 0 is object"),
        ([PIXELS[0] / 255], "record 0 is ndarray"),
        ("one.png", "is one record"),
        (["some", "text"], "takes pictures"),
        ([PIXELS[0], b"broken"], "record 1 cannot be encoded"),
    ],
)
def test_what_is_no_list_of_pictures(images, said, onnx_model):
    with pytest.raises(InputError, match=said):
        tacit.encode(images, f"onnx:{onnx_model}")


def test_functions_as_encoders():
    assert np.allclose(tacit.encode(PIXELS, flat, batch=5), flat(PIXELS), atol=1e-6)
    assert tacit.encode(
        ["a", "bb"], lambda texts: np.array([[len(text)] for text in texts])
    ).tolist() == [[1], [2]]
    for function, said in (
        (lambda _: np.zeros(3), r"returned float64 \(3,\)"),
        (lambda b: [["a"]] * len(b), "returned <U1"),
    ):
        with pytest.raises(InputError, match=said):
            tacit.encode(PIXELS, function)
    with pytest.raises(InputError, match=stating("encoders", "mirror")):
        tacit.encode(PIXELS, flat, mirror=True)
    with pytest.raises(InputError, match="no records"):
        tacit.encode([], flat)


@pytest.mark.parametrize("form", ["name", "function"])
def test_pipelines_keep_the_guarantee(onnx_model, form):
    encoder = tacit.Encoder(f"onnx:{onnx_model}" if form == "name" else flat, batch=4)
    learner = tacit.NoisySumPrototypes(budget="rho=2", classes=2, noise="research", random_state=0)
    pipeline = make_pipeline(encoder, learner).fit(PIXELS, np.arange(12) % 2)
    assert pipeline[-1].guarantee_ == learner.promise()
    assert pipeline.predict(PIXELS).shape == (12,)
    alone = clone(learner).fit(encoder.transform(PIXELS), np.arange(12) % 2)
    assert (alone.prototypes_ == pipeline[-1].prototypes_).all()
    assert clone(pipeline).fit(PIXELS, np.arange(12) % 2)[-1].guarantee_ == learner.promise()


def test_an_encoder_is_loaded_once_and_travels_without_its_model(onnx_model, monkeypatch):
    import pickle

    from tacit.encoding.encoders import estimator

    calls, own = [], estimator.load_encoder
    monkeypatch.setattr(
        estimator, "load_encoder", lambda *args, **options: calls.append(1) or own(*args, **options)
    )
    encoder = tacit.Encoder(f"onnx:{onnx_model}")
    first = encoder.fit(PIXELS).transform(PIXELS)
    encoder.transform(PIXELS)
    assert len(calls) == 1
    assert (pickle.loads(pickle.dumps(encoder)).transform(PIXELS) == first).all()
    encoder.set_params(mirror=True)
    assert not np.array_equal(encoder.transform(PIXELS), first)


def test_a_function_that_mixes_records_is_refused():
    with pytest.raises(InputError, match=stating("each record", "alone")):
        tacit.encode(PIXELS, lambda batch: flat(batch) - flat(batch).mean(axis=0))


def test_pillow_images_are_those_of_their_files(onnx_model, tmp_path):
    image = Image.fromarray((PIXELS[0, :, :20, 0].astype(np.uint16) << 8) + 3)
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.png", exif=exif)
    encoder = f"onnx:{onnx_model}"
    assert (
        tacit.encode([Image.open(tmp_path / "a.png")], encoder)
        == tacit.encode([tmp_path / "a.png"], encoder)
    ).all()


@pytest.mark.parametrize(
    ("images", "encoder", "options", "said"),
    [
        (PIXELS, None, {}, "neither a name nor a function"),
        (PIXELS, flat, {"batch": 0}, "batch=0"),
        (PIXELS, flat, {"workers": -1}, "workers=-1"),
        (None, flat, {}, "not a list of records"),
        (PIXELS, lambda batch: flat(batch) * np.nan, {}, stating("record 0", "finite")),
        (
            PIXELS,
            lambda batch: flat(batch)[:, : len(batch)],
            {"batch": 5},
            "then 2; return as many|different features alone",
        ),
        ([PIXELS[0][:, :, :2]], "onnx", {}, "record 0 is ndarray"),
    ],
)
def test_arguments_that_are_wrong(images, encoder, options, said, onnx_model):
    with pytest.raises(InputError, match=said):
        tacit.encode(images, f"onnx:{onnx_model}" if encoder == "onnx" else encoder, **options)
