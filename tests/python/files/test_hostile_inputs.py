"""Small files that grow, damaged ones and databases that compute: each is refused in a sentence, in bounded memory."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from pathlib import Path

import pytest

import roofprof
from roofprof.calibration import measured_kernels
from roofprof.cli import main
from roofprof.profiling import captures
from roofprof.render import files

TABLE = "m,n,k,dtype,seconds\n64,64,64,bf16,0.001\n"
TRACE = json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1}]})
NCU = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","gpu__time_duration.sum","ns","5"\n'
READERS = {
    "import FILE": TRACE,
    "import --ncu FILE": NCU,
    "calibrate L40S --from FILE": TABLE,
}


@pytest.fixture(name="refused")
def _refused(tmp_path, monkeypatch, capsys):
    """Return the sentence with which a command refuses its file, and what else is in the folder afterwards."""
    monkeypatch.chdir(tmp_path)

    def call(command, content=None, name="odd.csv.gz"):
        if content is not None:
            Path(name).write_bytes(content)
        before = sorted(Path().iterdir())
        assert main(command.replace("FILE", name).split()) == 2
        out, message = capsys.readouterr()
        assert (out, message.count("\n")) == ("", 1)
        assert "fault of roofprof" not in message
        assert sorted(Path().iterdir()) == before
        return message

    return call


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("filler", [b" ", b"\n", b'"ab",'])
def test_what_gzip_packed_has_a_limit(command, filler, refused, monkeypatch):
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 2**20)
    message = refused(command, gzip.compress(READERS[command].encode() + filler * 2**23))
    assert "odd.csv.gz: " in message
    if filler == b" " and command != "calibrate L40S --from FILE":  # others are no such file before the limit
        assert "more than 100 times as large" in message


def test_the_limit_leaves_what_is_packed_well(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 2**10)
    numbers = random.Random(1)
    rows = "".join(f"{numbers.randrange(1, 9999)},64,64,bf16,0.001\n" for _ in range(3000))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"m,n,k,dtype,seconds\n{rows}".encode()))
    with files.opened(tmp_path / "t.csv.gz", "a table") as file:
        assert len(file.read()) == len(rows) + len("m,n,k,dtype,seconds\n")


@pytest.mark.parametrize("command", READERS)
def test_damaged_gzip_is_reported(command, refused):
    packed = gzip.compress(READERS[command].encode() * 20)
    for place in range(10, len(packed) - 8, 7):
        message = refused(command, packed[:place] + bytes([packed[place] ^ 0x5A]) + packed[place + 1 :])
        assert "odd.csv.gz" in message
        assert "cut off or damaged" in refused(command, packed[:place])


@pytest.mark.parametrize("number", ["1e400", "-1", "nan", "1" + "0" * 5000, "", "\0"])
@pytest.mark.parametrize("column", [0, 4])
def test_numbers_of_a_table(number, column, refused):
    row = ["64", "64", "64", "bf16", "0.001"]
    row[column] = number
    message = refused("calibrate L40S --from FILE", f"m,n,k,dtype,seconds\n{','.join(row)}\n".encode(), "t.csv")
    assert "t.csv: " in message
    assert len(message) < 300


def test_a_table_has_most_products(refused, monkeypatch):
    monkeypatch.setattr(measured_kernels, "_MOST_PRODUCTS", 100)
    rows = "".join(f"{size},64,64,bf16,0.001\n" for size in range(1, 200))
    assert "more than 100 products" in refused(
        "calibrate L40S --from FILE", f"m,n,k,dtype,seconds\n{rows}".encode(), "t.csv"
    )


# ---- databases


def database(*statements):
    Path("n.sqlite").unlink(missing_ok=True)
    made = sqlite3.connect("n.sqlite")
    for statement in (
        "CREATE TABLE StringIds (id, value)",
        "INSERT INTO StringIds VALUES (1, 'k')",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName, deviceId, streamId, correlationId)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 2000, 1, 0, 7, 1)",
        *statements,
    ):
        made.execute(statement)
    made.commit()
    made.close()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.mark.parametrize(
    "table",
    [
        f"VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS} SELECT i AS start, i AS end FROM n",
        "VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT zeroblob(1000000000) AS start, 2 AS end",
        "VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start, end)",
    ],
    ids=["endless view", "large view", "virtual"],
)
def test_tables_alone_are_read(table, refused):
    database("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", f"CREATE {table}")
    assert "without the" in refused("import FILE", name="n.sqlite")


def test_what_a_table_computes_is_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    heavy = "GENERATED ALWAYS AS (hex(zeroblob(400000000)))"
    database(
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
        f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId {heavy}, streamId {heavy})",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end) VALUES (1000, 2500)",
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT load_extension('x'); END",
    )
    assert roofprof.from_trace("n.sqlite").total.time == pytest.approx(1.5e-6)


@pytest.mark.parametrize("value", ["'x'", "NULL", "x'ff'", "1.5"])
def test_cells_of_other_types(value, refused):
    for column in ("start", "end", "demangledName", "correlationId"):
        database(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {column} = {value}")
        if value == "NULL" and column not in {"start", "end"}:
            assert roofprof.from_trace("n.sqlite").total.time == pytest.approx(1e-6)
        else:
            assert f"CUPTI_ACTIVITY_KIND_KERNEL.{column} holds " in refused("import FILE", name="n.sqlite")
    if value != "'x'":
        database(f"UPDATE StringIds SET value = {value}")
        assert "StringIds.value holds " in refused("import FILE", name="n.sqlite")


def test_nothing_is_made_beside_a_database(refused, capsys):
    database()
    writer = sqlite3.connect("n.sqlite")
    assert writer.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    writer.close()
    before = sorted(Path().iterdir())
    assert main(["import", "n.sqlite"]) == 0
    capsys.readouterr()
    assert sorted(Path().iterdir()) == before
    writer = sqlite3.connect("n.sqlite")
    writer.execute("INSERT INTO StringIds VALUES (2, 'n')")
    writer.commit()
    assert "a program still writes to it" in refused("import FILE", name="n.sqlite")
    writer.close()


def test_damaged_databases(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    database()
    content = Path("n.sqlite").read_bytes()
    numbers = random.Random(7)
    used = [place for place, byte in enumerate(content) if byte]
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(numbers.choice((1, 1, 3, 20))):
            damaged[numbers.choice(used)] = numbers.randrange(256)
        Path("n.sqlite").write_bytes(damaged[: numbers.choice((len(damaged), numbers.randrange(len(damaged))))])
        code = main(["import", "n.sqlite"])
        message = capsys.readouterr().err
        assert code == 0 or (code == 2 and message.count("\n") == 1 and "fault of roofprof" not in message), message


# ---- lists of captures


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '[{"file": "a", "batch_size": 1e400}]',
        f'[{{"file": "a", "batch_size": 1{"0" * 5000}}}]',
        f'[{{"file": "a", "batch_size": {2**70}}}]',
        '[{"file": "a", "batch_size": -1}]',
        f'[{{"file": "rank{"1" * 5000}"}}]',
        '[{"file": "a\\u0000b"}]',
        '[{"file": "\\ud800"}]',
        '{"file": 1}',
        "\xff",
    ],
    ids=range(10),
)
def test_lists_of_captures(text, tmp_path):
    (tmp_path / "capture_traces").mkdir()
    (tmp_path / "capture_traces" / "execution_details.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"execution_details.json: .*(give the captures by name)") as raised:
        captures.captures_beside(tmp_path / "trace.json", [0], 0)
    assert len(str(raised.value).splitlines()) == 1
