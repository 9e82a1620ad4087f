"""The path of a run folder, or that of its record."""

from pathlib import Path

from stream.files.run_folder import run_folder_of


def test_a_run_is_named_by_its_folder_or_its_record(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert run_folder_of(file) == file  # there is none; whoever reads it says so
    file.write_text("{}")
    assert run_folder_of(file) == run_folder_of(tmp_path) == tmp_path
