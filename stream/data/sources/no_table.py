"""What a file is that is no table of text, by its first bytes, and what to do instead."""

import re

from stream.errors import UserError, require

AS_CSV = "export its table as CSV or Parquet"
BY_START = {  # in lower case, after white space
    b"version https://git-lfs": "a git-lfs pointer, not the file itself; run `git lfs pull`",
    b"<!doctype html": "a web page, not data; the download went wrong",
    b"<html": "a web page, not data; the download went wrong",
    b"<table": "a web page that is called a table; save it as CSV",
    b"<?xml": "XML (perhaps a web page), not data; write its rows as CSV or JSON Lines",
    b"{\\rtf": "a document (RTF); save its table as CSV",
}
BY_MAGIC = {
    b"SQLite format 3\0": f"an SQLite database; {AS_CSV}",
    b"<stata_dta>": f"a Stata file; {AS_CSV}",
    b"$FL2": f"an SPSS file; {AS_CSV}",
    b"$FL3": f"an SPSS file; {AS_CSV}",
    b"\0" * 12 + b"\xc2\xea\x81\x60": f"a SAS file; {AS_CSV}",
    b"RDX2\n": f"an R workspace; {AS_CSV}",
    b"RDX3\n": f"an R workspace; {AS_CSV}",
    b"X\n\0\0\0": f"an R object (.rds); {AS_CSV}",
    b"\x93NUMPY": f"a NumPy array; {AS_CSV}",
    b"\x89HDF\r\n\x1a\n": f"an HDF5 file; {AS_CSV}",
    b"Obj\x01": f"an Avro file; {AS_CSV}",
    b"ORC": f"an ORC file; {AS_CSV}",
    b"FEA1": f"a Feather file of version 1; {AS_CSV}",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Office file (.xls, .doc); save it as .xlsx or CSV",
    b"%PDF": "a PDF, not data; copy its table into a CSV file",
    b"\x89PNG\r\n": "an image (PNG), not data",
    b"\xff\xd8\xff": "an image (JPEG), not data",
    b"GIF8": "an image (GIF), not data",
    b"\x7fELF": "a program, not data",
    b"PAR1": "Parquet, not text; name it .parquet",
    b"ARROW1": "an Arrow file, not text; name it .arrow",
    b"\xff\xff\xff\xff": "an Arrow stream, not text; name it .arrow",
    b"PK\x03\x04": "a zip archive (or a workbook), not text; name it .zip (or .xlsx)",
    b"\x1f\x8b": "gzip, not text; name it .gz",
    b"BZh": "bzip2, not text; name it .bz2",
    b"\xfd7zXZ": "xz, not text; name it .xz",
    b"\x28\xb5\x2f\xfd": "zstd, not text; name it .zst",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it",
    b"Rar!": "a RAR archive; unpack it",
}
PICKLE = re.compile(rb"\x80[\x02-\x05][\x95c\]}(\x8c]")
OLD_STATA = re.compile(rb"[\x69-\x73][\x01\x02]\x01\0")
LIBSVM = re.compile(rb"(?:[+-]?\d+(?:\.\d+)?(?: +\d+:[-+.\deE]+)+ *(?:#[^\n]*)?\r?\n){2}")


def refuse_pages(raw: bytes, where: str) -> None:
    """Raise UserError for an empty file and for what is often saved in place of a data file."""
    require(len(raw) > 0, f"{where}: empty, it has 0 bytes")
    start = raw[:200].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for beginning, what in BY_START.items():
        require(not start.startswith(beginning), f"{where}: {what}")


def refuse_others(raw: bytes, where: str) -> None:
    """Raise UserError if a file that should be text is something else that is known."""
    found = next((what for magic, what in BY_MAGIC.items() if raw.startswith(magic)), None)
    if PICKLE.match(raw):
        found = f"a Python pickle, which may run any code when it is read; {AS_CSV}"
    elif OLD_STATA.match(raw):
        found = f"a Stata file; {AS_CSV}"
    elif raw[257:262] == b"ustar":
        found = "a tar archive; unpack it"
    elif LIBSVM.match(raw):
        found = "LIBSVM lines of numbers, without texts; a task needs the texts that they came from"
    if found is not None:
        raise UserError(f"{where}: by its content this is {found}")
