"""No file outside of the folder can be read, whatever it is called and wherever links lead."""

import os
from pathlib import Path

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


@pytest.mark.parametrize("name", ["../outside.json", "runs/../../outside.json", "runs/..", "..", "", "r.json\0"])
def test_names_do_not_lead_out(folder, name):
    assert "is not in the folder of reports" in refused(folder, name)


def test_absolute_names_are_refused_even_of_what_is_inside(folder):
    for path in (folder.path / "r.json", folder.path.parent / "outside.json", Path("/etc/passwd")):
        assert "is not in the folder of reports" in refused(folder, str(path))


def test_links_are_not_followed(folder):
    (folder.path / "link.json").symlink_to(folder.path.parent / "outside.json")
    (folder.path / "inside.json").symlink_to("r.json")
    (folder.path / "around").symlink_to(folder.path.parent)
    assert folder.files() == ["r.json", "runs/s.json"]
    for name in ("link.json", "inside.json", "around/outside.json"):
        assert "links are not followed" in refused(folder, name)


def test_a_folder_that_becomes_a_link_is_not_followed(folder):
    """Names are opened folder by folder: what was a folder when it was listed may be a link now."""
    assert "runs/s.json" in folder.files()
    (folder.path / "runs").rename(folder.path / "kept")
    (folder.path / "runs").symlink_to(folder.path.parent)
    assert "links are not followed" in refused(folder, "runs/outside.json")


def test_what_is_no_report_is_said(folder):
    (folder.path / "other.json").write_text('{"a": 1}')
    (folder.path / "deep.json").mkdir()
    os.mkfifo(folder.path / "pipe.json")
    assert refused(folder, "other.json").startswith("other.json: not a roofprof report: ")
    for name in ("deep.json", "pipe.json"):
        assert "is no regular file" in refused(folder, name)
    assert "there is no report 'rr.json'; the nearest are r.json" in refused(folder, "rr.json")


def test_hidden_files_are_no_reports(folder):
    (folder.path / ".git").mkdir()
    (folder.path / ".git" / "x.json").write_text("{}")
    (folder.path / ".x.json").write_text("{}")
    assert folder.files() == ["r.json", "runs/s.json"]


@pytest.mark.parametrize("name", ["../x.json", "/tmp/x.json", "a/x.json", "x.txt", ".x.json", "", "x\n.json"])
def test_new_reports_have_plain_names(folder, name):
    with pytest.raises(ValueError, match="is no name for a report"):
        folder.new_file(name)


def test_a_new_report_replaces_nothing(folder):
    (folder.path / "link.json").symlink_to(folder.path.parent / "not there")
    assert folder.new_file("new.json") == folder.path / "new.json"
    for name in ("r.json", "link.json"):
        with pytest.raises(ValueError, match="is there already"):
            folder.new_file(name)


def test_the_folder_has_to_be_there(tmp_path):
    with pytest.raises(NotADirectoryError, match="there is no such folder"):
        Folder(tmp_path / "absent")
