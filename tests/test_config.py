"""[tool.fusionlint] is read as written, and mistakes in it are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.config import Config, ConfigError, common_folder, read_config


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_without_a_table_everything_is_on(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, "[project]\nname = 'x'\n")) == Config()


def test_the_table_is_read(tmp_path: Path) -> None:
    write(tmp_path, "[tool.fusionlint]\nselect = ['a']\nignore = ['b', 'c']\ntarget = 'h100'\nexclude = ['docs/']\n")
    assert read_config(tmp_path) == Config(("a",), ("b", "c"), ("h100",), ("docs/",), root=tmp_path)


def test_the_nearest_table_above_counts(tmp_path: Path) -> None:
    write(tmp_path, "[tool.fusionlint]\nignore = ['far']\n")
    inner = tmp_path / "pkg" / "sub"
    inner.mkdir(parents=True)
    write(tmp_path / "pkg", "[project]\nname = 'x'\n")
    assert read_config(inner).ignore == ("far",)


def test_tables_strings_and_flags_are_read(tmp_path: Path) -> None:
    text = "[tool.fusionlint]\nbaseline = 'known.json'\nwarn-unused-ignores = true\nonly-seen = true\n"
    write(tmp_path, f"{text}[tool.fusionlint.per-file-ignores]\n'a/**' = ['b']\n'c.py' = 'd'\n")
    config = read_config(tmp_path)
    assert config.per_file_ignores == (("a/**", ("b",)), ("c.py", ("d",)))
    assert (config.baseline, config.root) == ("known.json", tmp_path)
    assert config.warn_unused_ignores
    assert config.only_seen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.fusionlint]\nbaseline = ['a']\n", "baseline has to be a string"),
        ("[tool.fusionlint]\nwarn-unused-ignores = 'yes'\n", "warn-unused-ignores has to be true or false"),
        ("[tool.fusionlint]\nper-file-ignores = ['a']\n", "per-file-ignores has to be a table like"),
        ("[tool.fusionlint.per-file-ignores]\na = 3\n", "per-file-ignores has to be a list of strings"),
        ("[tool.fusionlint]\nwarn_unused_ignores = true\n", "did you mean 'warn-unused-ignores'?"),
        ("[tool.fusionlint]\nselekt = ['a']\n", "no key 'selekt'; did you mean 'select'?"),
        ("[tool.fusionlint]\nselect = 3\n", "select has to be a list of strings"),
        ("[tool.fusionlint]\nselect = [3]\n", "select has to be a list of strings"),
        ("[tool]\nfusionlint = 3\n", "has to be a table"),
        ("[tool.fusionlint]\nexclude = ['[z-a]']\n", "exclude has to be patterns as in a .gitignore"),
        ("[tool.fusionlint]\nexclude = ['!']\n", "which '!' is not"),
        ("[tool.fusionlint.per-file-ignores]\n'\\' = ['all']\n", "per-file-ignores has to be patterns"),
        ("[tool.fusionlint.per-file-ignores]\n'!' = ['all']\n", "which '!' is not"),
        ("[tool.fusionlint\n", "is not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_config(write(tmp_path, text))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_whose_tools_are_no_table_is_for_others_to_mind(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, "tool = 3 # fusionlint\n")) == Config()


def test_which_path_is_named_first_says_nothing(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f"[tool.fusionlint]\nignore = ['{name}']\n")
    write(tmp_path, "[tool.fusionlint]\nignore = ['both']\n")
    one, other = tmp_path / "one", tmp_path / "other"
    assert read_config(common_folder([one, other])).ignore == ("both",)
    assert read_config(common_folder([other / "a.py", one / "b.py"])).ignore == ("both",)
    assert read_config(common_folder([one / "a.py", one / "b.py"])).ignore == ("one",)
    assert read_config(common_folder([other])).ignore == ("other",)
