"""The tables of docs/encoders.md: the families, from their files, and what was measured.

Run: python -m benchmarks.encoders.table results/encoders docs/encoders.md
Text between ``<!-- encoders:NAME -->`` and ``<!-- end -->`` is replaced; NAME is one of `TABLES`,
or ``memory``. The matrix of learners is made by `benchmarks.encoders.matrix`.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import markdown
from benchmarks.encoders.plan import SIZES
from benchmarks.encoders.records import MIB, Case, Found, Measured, Measurement, cases_of, measured
from benchmarks.markdown import table
from stream.formatting import DASH
from stream.models import families as package
from stream.models.families.family import Family, read_family

Records = Mapping[tuple[str, str], Measured]
WAYS = ("captured", "eager", "Trainer + peft")
AGREEMENT = "agreement"
REFERENCE = "Trainer + peft"


def own_families() -> dict[str, Family]:
    """Return the families of this program by the names of their files."""
    paths = sorted(Path(package.__file__).parent.glob("*.yaml"))
    return {path.stem: read_family(path) for path in paths}


def families(records: Records) -> str:
    """Return what the families' files say: a row each."""
    del records
    header = "file,model types,norms,an adapter reads the output of,positions,attention reads"
    return table(f"{header},a text's vector,soft prompts stand", _family_lines())


def _family_lines() -> Iterator[list[str]]:
    """Yield the rows of `families`."""
    for name, family in own_families().items():
        types = ", ".join(f"`{kind}`" for kind in family.model_types)
        places = f"`{family.attention.end}`, `{family.feedforward.end}`"
        prompts = f"behind {family.leading} token" if family.leading else "in front"
        pooling = ", ".join(f"`{way}`" for way in family.pooling)
        norms = f"{family.norms} a sub-layer"
        yield [name, types, norms, places, _positions(family), _reads(family), pooling, prompts]


def _positions(family: Family) -> str:
    """Return how tokens know their places."""
    kind, first = family.positions.kind, family.positions.first
    if kind != "absolute" or first == 0:
        return kind
    return f"{kind}, from {'behind padding' if first == 'after_padding' else first}"


def _reads(family: Family) -> str:
    """Return which tokens a token reads."""
    what = "those before" if family.causal else "all"
    if not family.windows:
        return what
    return f"{what}; only near ones{'' if '*' in family.windows else ' in some layers'}"


def speed(records: Records) -> str:
    """Return steps a second and memory of the common sizes, a row each."""
    header = f"encoder,parameters,{','.join(f'{way}: steps/s' for way in WAYS)}"
    more = f"captured / eager,captured / {REFERENCE},{','.join(f'{way}: MiB' for way in WAYS)}"
    return table(f"{header},{more}", _speed_lines(records))


def _speed_lines(records: Records) -> Iterator[list[str]]:
    """Yield the rows of `speed`."""
    for name in SIZES:
        found = [records.get((name, way)) for way in WAYS]
        if not any(found):
            continue
        rates = [line and line.steps_per_s for line in found]
        sizes = [line.parameters for line in found if line and line.parameters]
        parameters = f"{sizes[0] / 1e6:.0f}M" if sizes else DASH
        steps = [_number(rate, "{:.1f}") for rate in rates]
        ratios = [_ratio(rates[0], other) for other in rates[1:]]
        peaks = [_number(line and line.peak_mib, "{:,.0f}") for line in found]
        yield [name, parameters, *steps, *ratios, *peaks]


def _number(value: float | None, shown: str) -> str:
    """Return a number, or a dash for none."""
    return DASH if value is None else shown.format(value)


def _ratio(one: float | None, other: float | None) -> str:
    """Return how many times as fast one is as the other."""
    return f"{one / other:.2f}" if one and other else DASH


def captured(records: Records) -> str:
    """Return which tiny encoders are captured, and how far losses are from those of eager steps."""
    lines = []
    for (name, way), line in records.items():
        if way == AGREEMENT:
            said = "no: " + line.refusal if line.refusal else "yes"
            said = f"failed: {line.failed}" if line.failed else said
            lines.append([f"`{name}`", said, _number(line.difference, "{:.1g}")])
    return table("family,captured,largest difference of a loss", sorted(lines)) if lines else EMPTY


def remarks(records: Records) -> str:
    """Return what went wrong, why steps were not captured, and the machines."""
    sizes = [line for line in records.values() if line.way != AGREEMENT]
    lines = [
        f"- {line.name}, {line.way}: {line.failed or 'executed eagerly: ' + line.refusal}"
        for line in sizes
        if line.failed or line.refusal
    ]
    machines = sorted({line.machine for line in records.values()})
    return "\n".join([*lines, *(f"- measured on {name}" for name in machines)]) or EMPTY


def memory(measurements: Mapping[Case, Measurement]) -> str:
    """Return weights and peaks: a row for each encoder, storage and checkpointing."""
    if not measurements:
        return EMPTY
    lengths = list(dict.fromkeys(case.length for case in measurements))
    columns = ",".join(f"{length} tokens" for length in lengths)
    machines = sorted({line.machine for line in measurements.values()})
    text = table(
        f"encoder,`storage`,checkpointing,weights,{columns}", _memory_lines(measurements, lengths)
    )
    return "\n".join([text, "", *(f"- measured on {name}" for name in machines)])


def _memory_lines(
    measurements: Mapping[Case, Measurement], lengths: Sequence[int]
) -> Iterator[list[str]]:
    """Yield the rows of `memory`."""
    rows: dict[tuple[str, str, bool], dict[int, Found]] = {}
    for case, line in measurements.items():
        key = case.encoder, case.storage, case.checkpointing
        rows.setdefault(key, {})[case.length] = line.found
    for (encoder, storage, checkpointing), found in rows.items():
        weights = f"{max(one.weights for one in found.values()) / MIB:,.0f}"
        cells = [_peaks(found[length]) if length in found else DASH for length in lengths]
        yield [encoder, f"`{storage}`", "yes" if checkpointing else "no", weights, *cells]


def _peaks(found: Found) -> str:
    """Return a case's peaks in MiB and milliseconds a step, or why there is nothing."""
    if found.failed:
        return f"none ({found.failed})"
    peaks = (_number(b and b / MIB, "{:,.0f}") for b in (found.learning, found.scoring))
    step = "" if found.step_s is None else f", {1000 * found.step_s:,.0f} ms"
    return " / ".join(peaks) + step


EMPTY = "Not measured yet."
TABLES: Mapping[str, Callable[[Records], str]] = {
    "families": families,
    "speed": lambda records: speed(records) if records else EMPTY,
    "remarks": remarks,
    "captured": captured,
}
"""The tables by name."""


def fill(path: Path, results: Path) -> None:
    """Write the tables of a folder's records into a Markdown file."""
    records, measurements = measured(results), cases_of(results)
    markdown.fill(
        path,
        "encoders",
        lambda name: memory(measurements) if name == "memory" else TABLES[name](records),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/encoders.md.")
    parser.add_argument("results", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.md")
    given = parser.parse_args(arguments)
    for path in given.files:
        fill(path, given.results)


if __name__ == "__main__":
    main()
