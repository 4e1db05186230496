"""Machine files from the table of figures: harness/simulator/machines/figures.csv.

A row is: machine, parameter, value, unit, source, confidence. The machine is the name of a file, or
of a family, or `*` for all. What a machine says itself goes before its families, a later family
before an earlier one, and `*` comes last. Each machine has the rows `title`, `architecture` and
`comment`, and may have `families`, names divided by spaces.

A value that begins with `=` is computed: numbers, + - * / ( ) sqrt, and other parameters of the same
machine. Parameters called `input.…` are measurements that only enter such values; no file has them.
The order of the fields, and which there are, is that of docs/machines.md.

Fails (exit code 1) on a row that is incomplete, given twice, unknown or cannot be computed; with
--check, on a file that is missing, different or not in the table.
"""

import argparse
import ast
import csv
import math
import operator
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "harness/simulator/machines"
FIGURES = FOLDER / "figures.csv"
DOCUMENTATION = ROOT / "docs/machines.md"
COLUMNS = ["machine", "parameter", "value", "unit", "source", "confidence"]
TEXTS = ["title", "architecture", "comment", "families"]
CONFIDENCES = ["measured", "specified", "derived", "assumed"]
# What the last word of a parameter's name says about its unit.
UNITS = {"ns": "ns", "ghz": "GHz", "cycles": "cycles", "kib": "KiB", "bytes": "bytes", "percent": "%"}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Wrong(Exception):
    """What is wrong with the table, and where."""


def documented_fields():
    """The fields in the order of the documentation."""
    rows = re.findall(r"^\| `([a-z0-9]+\.[a-z0-9_]+)` \|", DOCUMENTATION.read_text(), re.MULTILINE)
    return list(dict.fromkeys(rows))


def table(known):
    """Machine or family → parameter → row."""
    found = {}
    with open(FIGURES, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            raise Wrong(f"{FIGURES.name}: the columns are {reader.fieldnames}, not {COLUMNS}")
        for row in reader:
            place = f"{FIGURES.name}:{reader.line_num}"
            check_row(place, row, known)
            rows = found.setdefault(row["machine"], {})
            if row["parameter"] in rows:
                raise Wrong(f"{place}: {row['machine']} has {row['parameter']} twice")
            rows[row["parameter"]] = row
    return found


def check_row(place, row, known):
    parameter = row["parameter"]
    if None in row or None in row.values():
        raise Wrong(f"{place}: the row has not {len(COLUMNS)} columns")
    if not row["machine"] or not row["value"]:
        raise Wrong(f"{place}: the machine or the value is empty")
    if parameter in TEXTS:
        return
    if parameter not in known and not parameter.startswith("input."):
        raise Wrong(f"{place}: {parameter} is no field of docs/machines.md and no input")
    unit = UNITS.get(parameter.rsplit("_", 1)[-1])
    if unit and row["unit"] != unit:
        raise Wrong(f"{place}: the unit of {parameter} is {unit}, not {row['unit']}")
    if len(row["source"]) < 5 or row["confidence"] not in CONFIDENCES:
        raise Wrong(f"{place}: {parameter} needs a source and one of {', '.join(CONFIDENCES)}")


def of_machine(name, rows):
    """The rows that hold for a machine."""
    own = rows[name]
    found = dict(rows.get("*", {}))
    families = own["families"]["value"].split() if "families" in own else []
    for family in families:
        if family not in rows:
            raise Wrong(f"{name}: there is no family {family}")
        found.update(rows[family])
    found.update(own)
    for text in TEXTS[:3]:
        if text not in own:
            raise Wrong(f"{name} has no {text}")
    return found


def number(name, rows, parameter, asked=()):
    """The value of a parameter, computed where it begins with `=`."""
    if parameter not in rows:
        raise Wrong(f"{name}: {' needs '.join((*asked, parameter))}, which is not there")
    if parameter in asked:
        raise Wrong(f"{name}: {' needs '.join((*asked, parameter))}")
    value = rows[parameter]["value"]
    asked = (*asked, parameter)
    try:
        tree = ast.parse(value.removeprefix("=").strip(), mode="eval").body
        return compute(tree, lambda other: number(name, rows, other, asked))
    except (SyntaxError, ValueError, ArithmeticError) as error:
        raise Wrong(f"{name}: {parameter} = {value!r} cannot be computed: {error}") from error


def compute(node, lookup):
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](compute(left, lookup), compute(right, lookup))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
            return math.sqrt(compute(argument, lookup))
        case ast.Attribute(value=ast.Name(id=group), attr=key):
            return lookup(f"{group}.{key}")
    raise ValueError(f"{ast.unparse(node)} is no number, parameter, + - * / or sqrt")


def written(name, rows, parameter):
    """A value as TOML. A computed one has three digits that count."""
    row = rows[parameter]
    if row["value"].startswith("="):
        return f"{float(f'{number(name, rows, parameter):.3g}'):g}"
    if row["unit"] == "word":
        return quoted(row["value"])
    if row["unit"] == "flag":
        return row["value"]
    number(name, rows, parameter)
    return row["value"]


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def text_of(name, rows, fields):
    comment = textwrap.fill(rows["comment"]["value"], 98, initial_indent="# ", subsequent_indent="# ")
    lines = [
        comment,
        "# Written by scripts/machine-files.sh from figures.csv; change the figures there.",
        "",
        f"name = {quoted(name)}",
        *(f"{text} = {quoted(rows[text]['value'])}" for text in TEXTS[:2]),
    ]
    section = None
    for field in fields:
        if field not in rows:
            continue
        group, key = field.split(".")
        if group != section:
            lines += ["", f"[{group}]"]
            section = group
        value, row = written(name, rows, field), rows[field]
        source, confidence = quoted(row["source"]), quoted(row["confidence"])
        lines.append(f"{key} = {{ value = {value}, source = {source}, confidence = {confidence} }}")
    return "\n".join(lines) + "\n"


def suits(field, rows):
    """Whether a machine of this shape has the field at all."""
    count = {"core.smt_share": "threads_per_core", "transfer.smt_ns": "threads_per_core"}.get(field)
    return count is None or rows[f"topology.{count}"]["value"] != "1"


def files():
    fields = documented_fields()
    rows = table(set(fields))
    for name in sorted(name for name in rows if "title" in rows[name]):
        found = of_machine(name, rows)
        yield FOLDER / f"{name}.toml", text_of(name, found, [f for f in fields if suits(f, found)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    made = dict(files())
    wrong = [f"{path.name} is not in {FIGURES.name}" for path in sorted(FOLDER.glob("*.toml")) if path not in made]
    for path, text in made.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if check:
            wrong.append(f"{path.name} is not what {FIGURES.name} makes; run scripts/machine-files.sh")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    if wrong:
        raise Wrong("\n".join(wrong))
    print(f"{len(made)} machine files are what {FIGURES.name} makes")


if __name__ == "__main__":
    try:
        main()
    except (Wrong, OSError) as error:
        sys.exit(f"error: {error}")
