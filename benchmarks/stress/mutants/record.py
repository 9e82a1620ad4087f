"""What a run writes down (`stream/record/`), and how files are written."""

from benchmarks.stress.mutants.mutant import changes
from benchmarks.stress.mutants.noticing import RECORD, SELECT

MUTANTS = (
    *changes(
        "stream/record/matrix.py",
        (RECORD,),
        ("range(max(last, 0))", "range(max(last - 1, 0))"),
        (
            "(self.cells[j][j], self.cells[last][j])",
            "(self.cells[last][j], self.cells[last][j])",
        ),
    ),
    *changes(
        "stream/record/ledger.py",
        (RECORD,),
        ("trained / self.base_parameters", "trained / self.encoder_layer_parameters"),
        ("trained / self.encoder_layer_parameters", "trained / self.base_parameters"),
        ("stored_bytes=stored[1]", "stored_bytes=stored[0]"),
        (
            "self.total_multiple = stored[0] / self.base_parameters",
            "self.total_multiple = 1 + stored[0] / self.base_parameters",
        ),
    ),
    *changes(
        "stream/record/derived.py",
        (RECORD,),
        (
            "model=[row.stored_bytes for row in rows]",
            "model=[row.stored_parameters for row in rows]",
        ),
        (
            "buffer=[row.buffer_bytes for row in rows]",
            "buffer=[row.buffer_examples for row in rows]",
        ),
        ("baseline=record.baseline", "baseline=None"),
        ("np.maximum(np.append", "np.minimum(np.append"),
    ),
    *changes(
        "stream/record/parts.py", (RECORD,), ("self.train_s += seconds", "self.train_s = seconds")
    ),
    *changes(
        "stream/record/rows.py",
        (RECORD,),
        ("range(start, stop)", "range(start, stop - 1)"),
        ("        record.losses[name] = found.losses\n", "        pass\n"),
        ("    record.timing.now(row.totals)\n", ""),
        ("fingerprints=dict(fingerprints)", "fingerprints={}"),
        ("points[-1].task >= index", "points[-1].task > index"),
    ),
    *changes(
        "stream/record/run_record.py",
        (RECORD,),
        ("above[on] = newest[0], cell", "above[on] = index, cell"),
        ("[len(self.ledger.tasks) :]", "[len(self.ledger.tasks) + 1 :]"),
        ("            self.derive()\n", ""),
    ),
    *changes(
        "stream/files/line_log.py",
        ("tests/files/test_line_log.py",),
        ("            file.truncate(self._size)\n", ""),
        ('.split(b"\\n")[:-1]\n    if', '.split(b"\\n")\n    if'),
        ("            self._size += len(line)\n", "            self._size += len(line) - 1\n"),
    ),
    *changes(
        "stream/record/selection.py",
        (SELECT,),
        ("if c.score == max(scores))", "if c.score == min(scores))"),
    ),
)
