"""Ordering mutants: is every memory ordering of the primitive crates needed, and would we notice?

For each `Acquire`, `Release`, `AcqRel` and `SeqCst` in the code of a shipped src/*.rs, a copy of
the tree in which that one word is `Relaxed` (a fence: is gone) must fail the crate's
tests/loom.rs; so must, since one half of an `AcqRel` may hide that the other is not needed, each of
its halves alone. A mutant that passes is a survivor: the ordering is not needed, or the models
cannot see why it is. A survivor is accepted if the crate's survivors.toml lists it with a reason:

    [[survivor]]
    file = "mcs.rs"
    code = "link.store(slot.node(), Ordering::Release);" # the statement, spaces collapsed
    ordering = "Release"
    to = "Relaxed"     # the default
    occurrence = 1     # among equal ones of the file; the default
    reason = "why it is needed all the same, and why no model sees it"

Fails (exit code 1) on a survivor that is not listed, on a listed one that is caught by now or does
not exist any more, on a mutant that does not build, and on a model that fails or does not end as
shipped. Verdicts are cached in <target>/mutants/cache.json by the content they depend on.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATES = ["counters", "locks", "queues", "alloc-arena"]
NOT_SHIPPED = {"conformance.rs"}
SHIPPED_TIMEOUT_SECONDS = 300
LEAST_TIMEOUT_SECONDS = 60
TIMES_AS_SHIPPED = 20

# What the models make of a file's content, and what that says of a mutant.
PASSES, FAILS, TIMEOUT, NO_BUILD = "passes", "fails", "does not end", "does not build"
VERDICTS = {PASSES: "SURVIVED", FAILS: "caught", TIMEOUT: "caught (hangs)", NO_BUILD: NO_BUILD}
NO_MODEL = "SURVIVED (no model)"

WEAKER = {"AcqRel": ["Relaxed", "Acquire", "Release"]}

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*)
      | (?P<raw>\b[bc]?r(?P<hashes>\#*)")
      | (?P<string>[bc]?"(?:\\.|[^"\\])*")
      | (?P<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])')""",
    re.VERBOSE | re.DOTALL,
)
USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s[^;]*;", re.MULTILINE)
ORDERING = re.compile(r"\b(?:Acquire|Release|AcqRel|SeqCst)\b")
FENCE = re.compile(r"(?:\w+::)*\bfence\(\s*(?:\w+::)*(Acquire|Release|AcqRel|SeqCst)\s*,?\s*\)")


@dataclass(frozen=True)
class Mutant:
    """One ordering of one file, weakened."""

    crate: str
    file: str
    line: int
    ordering: str
    to: str
    code: str
    occurrence: int
    mutated: str = field(repr=False)

    @property
    def anchor(self):
        return (self.file, self.code, self.ordering, self.to, self.occurrence)


def mask(source):
    """The source with comments, strings, characters and imports blanked; every offset stays."""
    out, at = [], 0
    while found := TOKEN.search(source, at):
        start, end = found.span()
        if found["raw"]:
            close = source.find('"' + found["hashes"], end)
            end = len(source) if close < 0 else close + 1 + len(found["hashes"])
        elif found["comment"] == "/*":
            end = end_of_block_comment(source, end)
        out += [source[at:start], blank(source[start:end])]
        at = end
    return USE.sub(lambda found: blank(found[0]), "".join(out) + source[at:])


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def end_of_block_comment(source, at):
    depth = 1
    while depth and (mark := re.compile(r"/\*|\*/").search(source, at)):
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return len(source) if depth else at


def statement(code, at):
    """The statement around an offset, on one line, as it would be written without line breaks."""
    start = max(code.rfind(mark, 0, at) for mark in ";{}") + 1
    ends = [end for mark in ";{}" if (end := code.find(mark, at)) >= 0]
    end = min(ends, default=len(code))
    text = " ".join(code[start : end + (code[end : end + 1] == ";")].split())
    return re.sub(r",? \)", ")", re.sub(r"\( ", "(", text)).replace(" .", ".")


def mutants_of(crate, file, source):
    code = mask(source)
    fences = {found.start(1): found for found in FENCE.finditer(code)}
    mutants, seen = [], {}
    for found in ORDERING.finditer(code):
        text = statement(code, found.start())
        (start, end), weaker = found.span(), WEAKER.get(found[0], ["Relaxed"])
        if fence := fences.get(start):
            (start, end), weaker = fence.span(), ["()"]
        nth = seen[text, found[0]] = seen.get((text, found[0]), 0) + 1
        line = source.count("\n", 0, found.start()) + 1
        for to in weaker:
            mutated = source[:start] + to + source[end:]
            mutants.append(Mutant(crate, file, line, found[0], to, text, nth, mutated))
    return mutants


def shipped_files(root, crate):
    paths = sorted((root / crate / "src").rglob("*.rs"))
    return [path for path in paths if path.name not in NOT_SHIPPED]


class Tree:
    """A copy of the working tree, in which one file at a time is mutated."""

    def __init__(self, scratch):
        self.root, self.target = scratch / "tree", scratch / "target"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True,
        ).stdout
        names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
        names = {name for name in names if (ROOT / name).is_file()}
        for old in [path for path in self.root.rglob("*") if path.is_file()]:
            if str(old.relative_to(self.root)) not in names:
                old.unlink()
        for name in sorted(names):
            self.write(name, (ROOT / name).read_bytes())
            shutil.copymode(ROOT / name, self.root / name)

    def write(self, name, content):
        """Writes only what differs, so that cargo builds only what differs."""
        path = self.root / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def build(self, crate):
        """The crate's model tests, built: the executable, or None and the compiler's last words."""
        command = ["cargo", "test", "-p", crate, "--all-features", "--test", "loom", "--no-run"]
        done = subprocess.run(
            [*command, "--message-format=json-render-diagnostics"],
            cwd=self.root, env={**os.environ, "CARGO_TARGET_DIR": str(self.target)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        for line in reversed(done.stdout.splitlines() if done.returncode == 0 else []):
            message = json.loads(line)
            if message.get("executable") and message["target"]["name"] == "loom":
                return message["executable"], ""
        return None, done.stderr[-2000:]


def run(executable, arguments, timeout):
    """Exit code (None after `timeout` seconds) and output."""
    with subprocess.Popen(
        [executable, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise


class Cache:
    """What was found for a content; written after each verdict."""

    def __init__(self, path, ignore):
        self.path, self.entries = path, {}
        if not ignore and path.is_file():
            try:
                self.entries = json.loads(path.read_text())
            except ValueError:
                print(f"{path} is damaged: starting anew", file=sys.stderr)

    def put(self, key, entry):
        self.entries[key] = entry
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(self.entries, indent=1, sort_keys=True) + "\n")
        draft.replace(self.path)


class Models:
    """The model tests of one crate."""

    def __init__(self, crate, tree, cache):
        self.crate, self.tree, self.cache = crate, tree, cache
        self.source = tree.root / crate / "src"
        path = tree.root / crate / "tests" / "loom.rs"
        parts = [path, *sorted((path.parent / "loom").glob("*.rs"))]
        self.text = "".join(part.read_text() for part in parts if part.is_file())
        self.names = None

    def include(self, file):
        return f'src/{file}"' in re.sub(r"^\s*//.*$", "", self.text, flags=re.MULTILINE)

    def filter(self, file):
        """The test filter for a file: its own module of models, or none at all."""
        if self.names is None:
            executable, said = self.tree.build(self.crate)
            if executable is None:
                sys.exit(f"{self.crate}: tests/loom.rs does not build as shipped\n{said}")
            _, output = run(executable, ["--list"], SHIPPED_TIMEOUT_SECONDS)
            self.names = re.findall(r"^(\S+): test$", output, re.MULTILINE)
        own = f"::{Path(file).stem}::"
        return [own] if any(own in name for name in self.names) else []

    def key(self, file, content):
        """A hash of all that a verdict depends on: the file, what it imports, and the models."""
        digest = hashlib.sha256()
        for part in [self.crate, file, content, self.text, loom_version(self.tree.root)]:
            digest.update(part.encode() + b"\0")
        for name in imports(self.source, file):
            digest.update((self.source / name).read_bytes() + b"\0")
        return digest.hexdigest()

    def judge(self, file, content, timeout):
        """Runs the models over the file with this content; (what they make of it, seconds)."""
        key = self.key(file, content)
        if entry := self.cache.entries.get(key):
            return entry["outcome"], entry["seconds"]
        arguments = self.filter(file)
        name, shipped = f"{self.crate}/src/{file}", (self.source / file).read_bytes()
        self.tree.write(name, content.encode())
        try:
            executable, _ = self.tree.build(self.crate)
            if executable is None:
                return NO_BUILD, 0.0
            begin = time.monotonic()
            code, output = run(executable, arguments, timeout)
            seconds = round(time.monotonic() - begin, 2)
        finally:
            self.tree.write(name, shipped)
        if "running 0 tests" in output:
            sys.exit(f"{name}: the filter {arguments} selects no model")
        outcome = TIMEOUT if code is None else PASSES if code == 0 else FAILS
        self.cache.put(key, {"file": name, "outcome": outcome, "seconds": seconds})
        return outcome, seconds

    def judge_mutant(self, mutant):
        if not self.include(mutant.file):
            return NO_MODEL, 0.0
        source = (self.source / mutant.file).read_text()
        shipped, seconds = self.judge(mutant.file, source, SHIPPED_TIMEOUT_SECONDS)
        if shipped != PASSES:
            return f"as shipped, the model {shipped}", seconds
        timeout = max(LEAST_TIMEOUT_SECONDS, TIMES_AS_SHIPPED * seconds)
        outcome, seconds = self.judge(mutant.file, mutant.mutated, timeout)
        return VERDICTS[outcome], seconds


def loom_version(root):
    lock = (root / "Cargo.lock").read_text()
    found = re.search(r'name = "loom"\nversion = "([^"]+)"', lock)
    return found[1] if found else "none"


def imports(source, file):
    """Sibling files that a file names by `super::` or `crate::`, transitively."""
    found, open_files = {"sync.rs", "contract.rs"}, [file]
    while open_files:
        code = (source / open_files.pop()).read_text()
        for name in re.findall(r"\b(?:super|crate)::(\w+)", code):
            if f"{name}.rs" not in found and (source / f"{name}.rs").is_file():
                found.add(f"{name}.rs")
                open_files.append(f"{name}.rs")
    return sorted(name for name in found - {file} if (source / name).is_file())


def listed_survivors(root, crate, only_file):
    """Anchor → reason, from the crate's survivors.toml."""
    path = root / crate / "survivors.toml"
    if not path.is_file():
        return {}
    listed = {}
    for entry in tomllib.loads(path.read_text()).get("survivor", []):
        missing = {"file", "code", "ordering", "reason"} - entry.keys()
        if missing or not entry["reason"].strip():
            sys.exit(f"{path}: an entry lacks {sorted(missing) or 'a reason'}: {entry}")
        to, occurrence = entry.get("to", "Relaxed"), entry.get("occurrence", 1)
        anchor = (entry["file"], entry["code"], entry["ordering"], to, occurrence)
        if anchor in listed:
            sys.exit(f"{path}: listed twice: {anchor}")
        if only_file in (None, entry["file"]):
            listed[anchor] = entry["reason"]
    return listed


def assess(verdict, listed):
    """Whether a verdict is fine, and what to say of it."""
    if verdict in (VERDICTS[FAILS], VERDICTS[TIMEOUT]):
        return not listed, verdict + (", yet listed in survivors.toml" if listed else "")
    if verdict in (VERDICTS[PASSES], NO_MODEL):
        return listed, verdict + (", listed" if listed else "")
    return False, verdict


def row(mutant, seconds, verdict):
    place = f"{mutant.crate}/src/{mutant.file}:{mutant.line}"
    change = f"{mutant.ordering} > {mutant.to}"
    return f"{place:28} | {change:17} | {seconds:>7} | {verdict:16} | {mutant.code}"


HEAD = Mutant("crate", "file.rs", "line", "shipped", "mutant", "statement", 1, "")


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/mutants.sh", description=__doc__.split("\n\n")[0],
        epilog="example: scripts/mutants.sh --crate locks --file mcs.rs",
    )
    parser.add_argument("--crate", choices=CRATES, action="append", help="default: all four")
    parser.add_argument("--file", help="one file of src/, such as mcs.rs")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--no-cache", action="store_true", help="forget earlier verdicts")
    return parser.parse_args()


def select(root, crates, only_file):
    """The mutants of the chosen files, crate by crate."""
    selected, found = {}, False
    for crate in crates:
        selected[crate] = []
        for path in shipped_files(root, crate):
            file = str(path.relative_to(root / crate / "src"))
            if only_file in (None, file):
                found = True
                selected[crate] += mutants_of(crate, file, path.read_text())
    if not found:
        sys.exit(f"no src/{only_file} in {', '.join(crates)}")
    return selected


def check(crate, mutants, models, listed):
    """Judges and prints the mutants of one crate; (passed, failed)."""
    passed = failed = 0
    for mutant in mutants:
        verdict, seconds = models.judge_mutant(mutant)
        fine, said = assess(verdict, listed.pop(mutant.anchor, None) is not None)
        passed, failed = passed + fine, failed + (not fine)
        print(row(mutant, f"{seconds:.1f}", said if fine else f"{said}  <- FAILED"), flush=True)
    if not mutants:
        print(f"{crate}: no ordering stronger than Relaxed")
    for file, code, ordering, to, nth in listed:
        print(f"{crate}/survivors.toml: no {ordering} > {to} no. {nth} in {file}: {code}")
    return passed, failed + len(listed)


def judge_all(options, scratch):
    """Judges the chosen mutants in a copy of the tree; (passed, failed)."""
    tree, cache = Tree(scratch), Cache(scratch / "cache.json", options.no_cache)
    passed = failed = 0
    for crate, mutants in select(tree.root, options.crate, options.file).items():
        listed = listed_survivors(tree.root, crate, options.file)
        more = check(crate, mutants, Models(crate, tree, cache), listed)
        passed, failed = passed + more[0], failed + more[1]
    return passed, failed


def main():
    options = parse()
    options.crate = options.crate or CRATES
    selected = select(ROOT, options.crate, options.file)
    print(row(HEAD, "seconds", "verdict"))
    if options.list:
        for mutant in [one for mutants in selected.values() for one in mutants]:
            print(row(mutant, "", ""))
        return 0
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    scratch = target / "mutants"
    scratch.mkdir(parents=True, exist_ok=True)
    with open(scratch / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once would mutate one tree
        passed, failed = judge_all(options, scratch)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
