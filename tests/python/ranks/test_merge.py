"""Files of ranks merged into one report, in Python and in the shell."""

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.cli import main

RANKS = 3


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Reports as torchrun's processes would write them: rank r has a batch of r + 1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", str(RANKS))
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    names = []
    for rank in range(RANKS):
        monkeypatch.setenv("RANK", str(rank))
        names.append(f"r.rank{rank}.json")
        profiler(model).run(torch.rand(rank + 1, 8)).to_json(names[-1])
    monkeypatch.delenv("RANK")
    return names


def test_sums(files):
    own = [roofprof.Report.from_json(name) for name in files]
    merged = roofprof.merge(files)
    assert merged.to_dict()["merged"] == roofprof.merge(own[::-1]).to_dict()["merged"]
    assert merged.total.macs == (1 + 2 + 3) * 8 * 4
    assert merged.total.bytes == sum(report.total.bytes for report in own)
    assert merged.total.time == pytest.approx(sum(report.total.time for report in own))
    assert merged.row("0").calls == RANKS
    assert merged.row("0").params == 8 * 4 + 4
    assert {op: group.macs for op, group in merged.by_operator().items()}["aten::linear"] == 6 * 32
    assert "no ranks: the report is of one process" in own[0].table(by="rank")
    # The slowest and the median rank keep their reports.
    by_compute = sorted(merged.ranks, key=lambda rank: (rank.compute, -rank.rank))
    kept = {by_compute[-1].rank, by_compute[1].rank}
    for rank in range(RANKS):
        if rank in kept:
            assert merged.report_of(rank) == own[rank]
        else:
            with pytest.raises(IndexError, match=f"the report of rank {rank} is not in this one"):
                merged.report_of(rank)
    with pytest.raises(IndexError, match="which has none of a rank"):
        own[0].report_of(0)


def test_files_and_tables(files, tmp_path, capsys):
    assert main(["merge", *files, "-o", "all.json"]) == 0
    table = capsys.readouterr().out
    assert "one call on 3 ranks on 1 host: work and times are sums over ranks; the longest took" in table
    assert "imbalance = (slowest - mean) / slowest" in table
    merged = roofprof.Report.from_json("all.json")
    assert merged == roofprof.merge(files)
    assert main(["show", "all.json", "--by", "rank", "--csv", "rows.csv"]) == 0
    header, *lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert header.startswith("rank,host,device,")
    assert [line.partition(",")[0] for line in lines] == ["0", "1", "2"]


def test_what_does_not_fit_is_refused_by_name(files, tmp_path, capsys, monkeypatch):
    (tmp_path / "cut.json").write_text((tmp_path / files[1]).read_text()[:5000])
    assert main(["merge", files[0], "cut.json", files[2], "-o", "all.json"]) == 2
    assert "cut.json: not a roofprof report" in capsys.readouterr().err
    assert not (tmp_path / "all.json").exists()
    assert main(["merge", files[0], "cut.json", "none.json", files[2], files[2], "--skip-bad", "-o", "all.json"]) == 0
    message = capsys.readouterr()
    assert "left out: cut.json: not a roofprof report" in message.err
    assert "none.json" in message.err
    assert f"left out: {files[2]}: rank 2 is there already" in message.err
    assert "rank 1 of 3 is missing" in message.out
    merged = roofprof.Report.from_json("all.json")
    assert merged.missing_ranks == [1]
    assert merged.partial
    monkeypatch.delenv("WORLD_SIZE")
    roofprof.count(nn.Linear(2, 2), torch.rand(1, 2)).to_json("alone.json")
    for arguments, words in (
        (["alone.json"], "it does not say which rank it is of"),
        (["all.json"], "it is a merged report already"),
        ([*files, "-o", files[0]], "is read by this command and would be lost"),
    ):
        assert main(["merge", *arguments]) == 2
        assert words in capsys.readouterr().err
    with pytest.raises(ValueError, match="no reports to merge"):
        roofprof.merge([])


@pytest.mark.parametrize(("rank", "size"), [("abc", "2"), ("2", "2"), ("0", None), (None, "2")])
def test_an_environment_that_names_no_rank_is_reported(rank, size, monkeypatch):
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    report = roofprof.count(nn.Linear(2, 2), torch.ones(1, 2))
    (note,) = report.coverage.notes
    assert note.code == "rank-not-known"
    assert (f"RANK is '{rank}'" if rank else "RANK is not set") in note
    with pytest.raises(ValueError, match="it does not say which rank it is of: torchrun's RANK and WORLD_SIZE did not"):
        roofprof.merge([report, report])
