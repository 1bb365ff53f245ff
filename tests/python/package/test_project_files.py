"""Files beside the README on the version, the commands and what a report has: they agree with the package."""

import json
import re
from pathlib import Path

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.cli.parser import EXAMPLES

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.integration
def test_the_citation_has_the_version_and_what_the_format_asks_for():
    import yaml

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == roofprof.__version__
    assert cited["title"] == "roofprof"
    assert {"cff-version", "message", "authors", "license"} <= set(cited)
    assert cited["references"][0]["doi"] == "10.1145/1498765.1498785"


def test_the_changelog_has_this_version_first_and_every_command():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\d+\.\d+\.\d+)", text, re.MULTILINE)[0] == roofprof.__version__
    assert {name for name in EXAMPLES if f"`{name}`" in text} == set(EXAMPLES)


def test_a_report_has_nothing_of_what_the_security_note_rules_out(tmp_path, monkeypatch):
    """Of values, source, environment, host and user; names of the model are there."""
    marks = {"HOST": "marked-host", "USER": "marked-user", "SECRET_TOKEN": "marked-secret"}
    for name, value in marks.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["marked-argument"])
    model = nn.Sequential()
    model.encoder_of_mine = nn.Linear(3, 2)
    with torch.no_grad():
        model.encoder_of_mine.weight.fill_(0.8421337)
    profiler(model, keep_events=True).run(torch.full((5, 3), 0.7316889)).to_json(tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text()
    assert "encoder_of_mine" in text
    import getpass
    import socket

    texts = [*marks.values(), "marked-argument", "0.8421", "0.7316", str(tmp_path), str(ROOT), "fill_"]
    assert [word for word in texts if word in text] == []
    words = set(re.findall(r"[\w.-]+", json.dumps(json.loads(text)["environment"])))
    assert not {socket.gethostname(), getpass.getuser()} & words
