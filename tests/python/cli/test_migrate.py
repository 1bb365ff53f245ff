"""``roofprof migrate``: what changes in programs, what stays, and that a changed program runs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from roofprof.cli import main
from roofprof.cli.rewriting import TOOLS, migrated, names_of

pytestmark = pytest.mark.integration


def change(source: str) -> tuple[str, list[tuple[int, str]]]:
    migration = migrated(source.encode())
    return migration.source.decode(), [(left.line, left.text) for left in migration.left]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import thop\nthop.profile(m, x)\n", "import roofprof.compat.thop as thop\nthop.profile(m, x)\n"),
        ("import thop as t  # why\nt.profile\n", "import roofprof.compat.thop as t  # why\nt.profile\n"),
        (
            "from thop import profile, clever_format as c\n",
            "from roofprof.compat.thop import profile, clever_format as c\n",
        ),
        ("import os, thop\n", "import os, roofprof.compat.thop as thop\n"),
        ("import fvcore.nn as f\nf.flop_count\n", "import roofprof.compat.fvcore as f\nf.flop_count\n"),
        (
            "import fvcore.nn\nx = fvcore.nn.flop_count(m, fvcore.nn.Handle)\n",
            "import roofprof.compat.fvcore\nx = roofprof.compat.fvcore.flop_count(m, roofprof.compat.fvcore.Handle)\n",
        ),
        (
            "try:\n    from thop import profile\nexcept ImportError:\n    profile = None\n",
            "try:\n    from roofprof.compat.thop import profile\nexcept ImportError:\n    profile = None\n",
        ),
        (
            "def f():\r\n\tfrom thop import (profile)\r\n",
            "def f():\r\n\tfrom roofprof.compat.thop import (profile)\r\n",
        ),
    ],
)
def test_imports_change_and_nothing_else(before, after):
    assert change(before) == (after, [])


@pytest.mark.parametrize(
    "guarded",
    [
        "try:\n    import thop\nexcept ImportError:\n    thop = None\nif thop is not None:\n    thop.profile(m, x)\n",
        "try:\n    import thop\nexcept ImportError:\n    thop: object = False\nif verbose and not thop:\n    exit()\n",
        "import thop\nx = thop.profile(m, x) if thop else 0\nassert thop\n",
    ],
)
def test_a_module_that_is_only_tested_is_not_used_by_itself(guarded):
    assert change(guarded) == (guarded.replace("import thop", "import roofprof.compat.thop as thop"), [])


@pytest.mark.parametrize(
    "source",
    [
        "",
        "import torch\nimport thopper, fvcore\nfrom fvcore.common import timer\n",
        "import torch, torch.utils.data\ntorch.utils.data.DataLoader(torch.rand(2))\n",
        "from . import thop\nfrom .thop import profile\n",
        "text = 'import thop'  # from thop import profile\n",
    ],
)
def test_what_is_none_of_the_tools_stays(source):
    assert change(source) == (source, [])


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        ("\nfrom thop import *\n", 2, "name what is imported"),
        ("from fvcore import nn\n", 1, "import its names instead"),
        ("from thop import vision\n", 1, "thop import vision: roofprof.compat does not have it"),
        ("import thop\nthop.profile\nthop.vision.calc\n", 1, "does not have vision"),
        ("import thop\nshow(thop)\n", 1, "does not have the module itself"),
        ("import fvcore.nn\nfvcore.nn.flop_count\nfvcore.common\n", 1, "'fvcore' is used by itself"),
        ("import torch.utils.flop_counter\ntorch.rand(2)\n", 1, "'torch' is used by itself"),
        ("from thop.vision.basic_hooks import count_convNd\n", 1, "roofprof.compat does not have it"),
        ("from torchinfo.layer_info import LayerInfo\n", 1, "roofprof.compat does not have it"),
        ("import thop.vision\nthop.vision.calc()\n", 1, "import thop.vision: import its names instead"),
        ("import fvcore\nfvcore.nn.flop_count(m, x)\n", 1, "import fvcore: import its names instead"),
        ("import torch as t\nt.utils.flop_counter.FlopCounterMode()\n", 1, "import torch: import its names instead"),
        ("f(m, x).set_op_handle('aten::cumsum', count)\n", 1, "write the handle anew"),
        ("x = 1\nm = importlib.import_module('thop')\n", 2, "it is imported by its name"),
    ],
)
def test_what_cannot_be_changed_is_listed_and_stays(source, line, said):
    after, [(where, text)] = change(source)
    assert after == source
    assert where == line
    assert said in text


def test_names_are_found_where_tools_keep_them():
    assert change("from thop.profile import profile as p\n")[0] == "from roofprof.compat.thop import profile as p\n"
    before = "from torchinfo.model_statistics import ModelStatistics\n"
    assert change(before) == (before.replace("torchinfo.model_statistics", "roofprof.compat.torchinfo"), [])
    for module, name in [
        ("parameter_count", "parameter_count_table"),
        ("print_model_statistics", "flop_count_str"),
        ("activation_count", "ActivationCountAnalysis"),
    ]:
        before = f"from fvcore.nn.{module} import {name}\n"
        assert change(before) == (before.replace(f"fvcore.nn.{module}", "roofprof.compat.fvcore"), [])
    before = "from ptflops.flops_counter import get_model_complexity_info\n"
    assert change(before) == (before.replace("ptflops.flops_counter", "roofprof.compat.ptflops"), [])


def test_other_encodings_are_shown_as_they_are(tmp_path, capsys):
    program = tmp_path / "latin.py"
    program.write_bytes("# -*- coding: latin-1 -*-\nimport thop  # l\u00e9ger\n".encode("latin-1"))
    assert main(["migrate", str(program), "--write"]) == 0
    assert "import thop  # l\u00e9ger" in capsys.readouterr().out
    assert program.read_bytes().endswith("as thop  # l\u00e9ger\n".encode("latin-1"))


def test_an_import_of_known_and_unknown_names_is_split():
    before = "from fvcore.nn import (  # both\n    FlopCountAnalysis,  # ours\n    giou_loss,  # theirs\n)  # end\n"
    after, left = change(before)
    assert left == [(1, "from fvcore.nn import giou_loss: roofprof.compat does not have it")]
    nodes = ast.parse(after).body
    assert {node.module: [alias.name for alias in node.names] for node in nodes} == {
        "roofprof.compat.fvcore": ["FlopCountAnalysis"],
        "fvcore.nn": ["giou_loss"],
    }
    assert all(comment in after for comment in ("# both", "# ours", "# theirs", "# end"))
    assert change("from fvcore.nn import flop_count, giou_loss\n")[0] == (
        "from roofprof.compat.fvcore import flop_count\nfrom fvcore.nn import giou_loss\n"
    )


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_its_module(tool):
    assert names_of(tool)


def test_what_is_no_python_is_said_with_its_line():
    with pytest.raises(ValueError, match=r"^line \d: this is no Python"):
        migrated(b"x = 1\ndef f(:\n")
    with pytest.raises(ValueError, match="this is no"):
        migrated(b"\xff\xfe\x00")


SCRIPT = """\
import torch
from thop import clever_format, profile  # MACs

macs, _ = profile(torch.nn.Linear(3, 5), inputs=(torch.rand(2, 3),), verbose=False)
print(clever_format(macs))
"""


def test_the_command_shows_then_writes_and_the_program_runs(tmp_path, capsys):
    path, other = tmp_path / "train.py", tmp_path / "other.py"
    path.write_text(SCRIPT)
    other.write_text("import os\n")
    assert main(["migrate", str(path), str(other), "--json", str(tmp_path / "m.json")]) == 0
    shown = capsys.readouterr()
    assert "-from thop import clever_format, profile  # MACs" in shown.out
    assert "+from roofprof.compat.thop import clever_format, profile  # MACs" in shown.out
    assert "1 of 2 files would change: --write changes them" in shown.err
    assert path.read_text() == SCRIPT
    files = json.loads((tmp_path / "m.json").read_text())["files"]
    assert [bool(file["difference"]) for file in files] == [True, False]
    assert main(["migrate", str(path), str(other), "--write"]) == 0
    assert other.read_text() == "import os\n"
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "30.00B"
    assert main(["migrate", str(path)]) == 0
    assert "nothing to change" in capsys.readouterr().err


def test_a_bad_file_changes_none(tmp_path, capsys):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(SCRIPT)
    bad.write_text("def f(:\n")
    assert main(["migrate", "--write", str(good), str(bad)]) == 2
    assert f"{bad}: line" in capsys.readouterr().err
    assert good.read_text() == SCRIPT
    assert main(["migrate", str(tmp_path / "none.py")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["migrate", str(tmp_path)]) == 2
