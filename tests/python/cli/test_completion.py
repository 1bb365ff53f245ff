"""The script of ``roofprof completion``, read by the shells themselves."""

import shutil
import subprocess
import sys

import pytest

from roofprof.cli import completion, main
from roofprof.cli.shared import TABLES

pytestmark = pytest.mark.integration

pytest.importorskip("shtab")

# As bash does when the tab key is pressed: the function fills COMPREPLY for the word under the cursor.
COMPLETE = """
source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
cursor="${{COMP_WORDS[COMP_CWORD]}}"; before="${{COMP_WORDS[COMP_CWORD-1]}}"
compopt() {{ :; }}
function=$(complete -p roofprof | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" roofprof "$cursor" "$before"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(name="completed")
def _completed(tmp_path, capsys):
    """What bash offers for words; the last is being typed."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "report.json").write_text("{}")

    def offer(*words):
        quoted = " ".join(f"'{word}'" for word in words)
        text = COMPLETE.format(script=tmp_path / "script", words=quoted)
        run = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert run.stderr == ""
        return run.stdout.split()

    return offer


def test_what_is_offered(completed):
    for words, offered in (
        ("c", ["compare", "check", "calibrate", "ceilings", "completion"]),
        ("pr", ["profile", "predict"]),  # and no command of two words
        ("plot --k", ["--kind"]),
        ("plot --kind ", ["roofline", "time"]),
        ("show r.json --by ", list(TABLES)),
        ("check --budget re", ["report.json"]),
        ("run re", ["report.json"]),
        ("import t.json --model re", ["report.json"]),
    ):
        assert completed("roofprof", *words.split(" ")) == offered
    assert "--margin" in completed("roofprof", "check", "--")
    assert "--margin" not in completed("roofprof", "show", "--")
    assert "wasted_time" in completed("roofprof", "show", "r.json", "--sort", "wa")
    assert "RTX4090" in completed("roofprof", "predict", "r.json", "--device", "RTX4")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_takes_its_script(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("ceilings", "--json" if shell in {"bash", "zsh"} else "json"))
    if shutil.which(shell) is None or shell == "tcsh":
        pytest.skip(f"{shell} cannot be asked here")
    (tmp_path / "script").write_text(text)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)  # reads it, and runs nothing


def test_without_shtab_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err == (
        "roofprof: roofprof completion needs shtab: run `pip install shtab`, or take roofprof[completion]\n"
    )
