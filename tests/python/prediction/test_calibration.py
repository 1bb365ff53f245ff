"""A device that was calibrated: numbers that were put into made-up measurements are found again."""

import csv
import random

import pytest
import torch
from on_meta import counted, mlp
from torch import nn

import roofprof
from roofprof import _report
from roofprof.calibration.measured_kernels import products
from roofprof.cli import main

DEVICE = "H100 SXM"


def sizes(number=60):
    chosen = random.Random(0)
    return [tuple(2 ** chosen.randint(4, 13) for _ in range(3)) for _ in range(number)]


def with_numbers(numbers):
    """The published roofs of the device with other numbers of the prediction."""
    listed = [{"name": name, "value": value} for name, value in numbers.items()]
    content = roofprof.Ceilings.published(DEVICE).to_dict()
    return _report.ceilings_from_dict(
        content | {"calibration": {"source": "made up", "numbers": listed, "classes": []}}
    )


def made_up(numbers):
    """Products whose times are those that these numbers predict."""
    kernels = products({"bfloat16": dict.fromkeys(sizes(), 1.0)})
    seconds = kernels.predicted(with_numbers(numbers), _report.PredictionParameters.shipped())
    return dict(zip(dict.fromkeys(sizes()), seconds, strict=True))


def table(path, rows, **changed):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["m", "n", "k", "dtype", "seconds"])
        writer.writerows([*of, changed.get("dtype", "bf16"), time] for of, time in rows.items())
    return path


def test_predictions_use_them_and_files_keep_them(tmp_path):
    slow = with_numbers({"achieved.product.of_peak": 0.3})
    report = counted(lambda: nn.Linear(8192, 8192), 8192, 8192, dtype=torch.bfloat16)
    plain, calibrated_time = (report.predict(roofs, mode="graph").total.time for roofs in (DEVICE, slow))
    assert calibrated_time > 1.5 * plain
    path = tmp_path / "roofs.json"
    slow.save(path)
    assert roofprof.Ceilings.load(path) == slow
    assert report.predict(path, mode="graph").total.time == calibrated_time
    assert report.predict_all([path], mode="graph")[0].time == pytest.approx(calibrated_time, rel=1e-6)


def test_a_number_that_is_none():
    with pytest.raises(ValueError, match="the prediction has no number 'product.magic'"):
        counted(mlp, 4, 64).predict(with_numbers({"product.magic": 1.0}))


def test_numbers_of_made_up_kernels_are_found(tmp_path, capsys):
    true = {"achieved.product.launch": 9e-6, "achieved.product.of_peak": 0.6}
    path, out = table(tmp_path / "products.csv", made_up(true)), tmp_path / "h100.json"
    assert main(["calibrate", DEVICE, "--from", str(path), "--json", str(out)]) == 0
    message = capsys.readouterr().out
    number = len(dict.fromkeys(sizes()))
    assert f"{DEVICE}, calibrated with products.csv ({number} kernels)" in message
    found = roofprof.Ceilings.load(out)
    assert found.calibration.source == f"products.csv ({number} kernels)"
    assert [peak.operations_per_second for peak in found.compute] == [
        peak.operations_per_second for peak in roofprof.Ceilings.published(DEVICE).compute
    ]
    (of_class,) = found.calibration.classes
    assert (of_class.name, of_class.kernels) == ("linear", number)
    assert of_class.median_error < 0.02 < of_class.median_error_before
    numbers = {number.name: number.value for number in found.calibration.numbers}
    assert numbers["achieved.product.launch"] == pytest.approx(9e-6, rel=0.1)
    assert numbers["linear.low"] < 1 < numbers["linear.high"]


def test_what_is_no_table_of_kernels(tmp_path, capsys):
    def refused(path):
        assert main(["calibrate", DEVICE, "--from", str(path), "--json", str(tmp_path / "roofs.json")]) == 2
        assert not (tmp_path / "roofs.json").exists()
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        return message

    path = tmp_path / "t.csv"
    for text, words in (
        ("m,n,k,dtype\n1,2,3,bf16\n", "lacks the column seconds"),
        ("m,n,seconds\n1,2,3\n", "lacks the column k, dtype"),
        ("m,n,k,dtype,ms\n1,2,x,bf16,1\n", "line 2 has a size or a time that is no number"),
        ("m,n,k,dtype,ms\n1,2,3,bf16,-1\n", "line 2 has a size or a time that is not above 0"),
        ("m,n,k,dtype,ms\n1,2,3,int3,1\n", "no row has a type that a product can be measured in"),
        ("m,n,k,dtype,ms\n16,16,16,bf16,1\n", "no class of ops was measured with 8 shapes or more"),
    ):
        path.write_text(text)
        assert words in refused(path)
    # The same times in another unit than the column says.
    slow = {of: 1e4 * seconds for of, seconds in made_up({"achieved.product.launch": 9e-6}).items()}
    assert f"these are no times of {DEVICE}" in refused(table(path, slow))
    counted(mlp, 4, 64).to_json(tmp_path / "count.json")
    assert "its times are not those of a GPU's kernels" in refused(tmp_path / "count.json")
