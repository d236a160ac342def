# SPDX-License-Identifier: Apache-2.0
"""Completions of three shells, asked as the shells ask."""
import os
import pathlib
import subprocess
import tempfile

import pytest

from conftest import BUILD, ROOT

DOCS = BUILD / "docs"

# What stands before the cursor, some answers that must come, some that may not.
WANTED = [
    ("wallprof du", {"dump"}, {"check"}),
    ("wallprof dump --gr", {"--group"}, set()),
    ("wallprof --threads --gr", {"--group"}, set()),
    ("wallprof --gr", set(), {"--group"}),
    ("wallprof --block-r", {"--block-rate"}, set()),
    ("wallprof --stop ", {"auto", "all", "never"}, {"dump"}),
    ("wallprof report --f", {"--full", "--format"}, {"--follow-processes"}),
    ("wallprof report READ", {"README.md"}, set()),
    ("wallprof -o READ", {"README.md"}, set()),
    ("wallprof run tru", {"true"}, set()),
    ("wallprof -- tru", {"true"}, set()),
    ("wallprof record --profile ", {"block", "mutex"}, {"goroutine"}),
    ("wallprof dump --profile ", {"goroutine", "heap", "block"}, {"wall"}),
    ("wallprof dump 1", {"1"}, {"dump"}),
]


def run(*argv, **kwargs):
    return subprocess.run(argv, cwd=ROOT, check=True, timeout=100,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          **kwargs).stdout.decode().splitlines()


def ask_bash(line):
    script = """. "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wallprof
        printf '%s\\n' "${COMPREPLY[@]}" """
    return run("bash", "-c", script, "bash", str(DOCS / "wallprof.bash"),
               *line.split(" "))


def ask_fish(line):
    script = "source $argv[1]; complete -C $argv[2]"
    return [answer.split("\t")[0] for answer in run(
        "fish", "-c", script, str(DOCS / "wallprof.fish"), line)]


# zsh completes in its line editor alone: on a terminal of its own (zpty), where
# what compadd finds is printed beside being shown.
ZSHRC = r"""
PROMPT=
fpath=($DOCS $fpath)
autoload -U compinit; compinit -u -D
bindkey '^I' complete-word
zstyle ':completion:*' completer _complete
compadd () {
    local -a found; local word
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)' '* ]]; then
        builtin compadd -A found "$@"
        for word in $found; do print -r -- "<<$word>>"; done
    fi
    builtin compadd "$@"
}
at_end () { print '<<END>>' }
comppostfuncs=(at_end)
print READY
"""
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -i
zpty -r shell out '*READY*'
zpty -n -w shell "$1"$'\t'
zpty -r shell out '*<<END>>*'
print -r -- "$out"
zpty -d shell
"""


def ask_zsh(line):
    with tempfile.TemporaryDirectory() as home:
        (pathlib.Path(home) / ".zshrc").write_text(ZSHRC)
        text = "\n".join(run("zsh", "-f", "-c", ZSH, "zsh", line, env={
            **os.environ, "ZDOTDIR": home, "DOCS": str(DOCS), "TERM": "vt100"}))
    return [part.split(">>")[0] for part in text.split("<<")[1:]]


@pytest.mark.parametrize("ask", [ask_bash, ask_fish, ask_zsh])
@pytest.mark.parametrize("line, some, none", WANTED,
                         ids=[row[0] for row in WANTED])
def test_a_shell_completes(ask, line, some, none):
    answers = set(ask(line))
    assert some <= answers, answers
    assert not none & answers, none & answers


def test_shellcheck_finds_nothing():
    run("shellcheck", str(DOCS / "wallprof.bash"))
