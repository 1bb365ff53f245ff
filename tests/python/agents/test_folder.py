"""No file outside of the folder can be read, whatever it is called and wherever links lead."""

import os

import pytest
import torch
from given_roofs import profiler

from roofprof.agents.folder import Folder


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """A folder with a report in it, one further in, and one outside that nothing may read."""
    report = profiler(torch.nn.Linear(8, 4)).run(torch.rand(2, 8))
    (tmp_path / "reports" / "runs").mkdir(parents=True)
    for name in ("outside.json", "reports/r.json", "reports/runs/s.json"):
        report.to_json(tmp_path / name)
    return Folder(tmp_path / "reports")


def refused(folder, name):
    with pytest.raises(ValueError) as caught:
        folder.report(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_reports_are_listed_and_read_by_their_names(folder):
    assert folder.files() == ["r.json", "runs/s.json"]
    assert folder.report("r.json") == folder.report("runs/s.json")
    assert folder.report("./runs/s.json").model == "Linear"


def test_a_report_that_changes_is_read_again(folder):
    before = folder.report("r.json")
    assert folder.report("r.json") is before
    profiler(torch.nn.ReLU()).run(torch.rand(2, 8)).to_json(folder.path / "r.json")
    assert folder.report("r.json").model == "ReLU"


def test_names_do_not_lead_out(folder):
    names = ["../outside.json", "runs/../../outside.json", "..", "", "r.json\0", "/etc/passwd"]
    for name in [*names, str(folder.path / "r.json")]:  # no absolute one, even of what is inside
        assert "is not in the folder of reports" in refused(folder, name)


def test_links_are_not_followed(folder):
    """Names are opened folder by folder: what was a folder when it was listed may be a link now."""
    (folder.path / "link.json").symlink_to(folder.path.parent / "outside.json")
    (folder.path / "inside.json").symlink_to("r.json")
    (folder.path / "around").symlink_to(folder.path.parent)
    assert folder.files() == ["r.json", "runs/s.json"]
    (folder.path / "runs").rename(folder.path / "kept")
    (folder.path / "runs").symlink_to(folder.path.parent)
    for name in ("link.json", "inside.json", "around/outside.json", "runs/outside.json"):
        assert "links are not followed" in refused(folder, name)


def test_what_is_no_report_is_reported_and_hidden_files_are_none(folder):
    (folder.path / "other.json").write_text('{"a": 1}')
    (folder.path / "deep.json").mkdir()
    os.mkfifo(folder.path / "pipe.json")
    assert refused(folder, "other.json").startswith("other.json: not a roofprof report: ")
    for name in ("deep.json", "pipe.json"):
        assert "is no regular file" in refused(folder, name)
    assert "there is no report 'rr.json'; the nearest are r.json" in refused(folder, "rr.json")
    (folder.path / ".git").mkdir()
    for hidden in (".git/x.json", ".x.json"):
        (folder.path / hidden).write_text("{}")
    assert folder.files() == ["other.json", "pipe.json", "r.json", "runs/s.json"]
    with pytest.raises(NotADirectoryError, match="there is no such folder"):
        Folder(folder.path / "absent")


def test_new_reports_have_plain_names_and_replace_nothing(folder):
    (folder.path / "link.json").symlink_to(folder.path.parent / "not there")
    assert folder.new_file("new.json") == folder.path / "new.json"
    for name in ("../x.json", "/tmp/x.json", "a/x.json", "x.txt", ".x.json", "", "x\n.json"):
        with pytest.raises(ValueError, match="is no name for a report"):
            folder.new_file(name)
    for name in ("r.json", "link.json"):
        with pytest.raises(ValueError, match="is there already"):
            folder.new_file(name)
