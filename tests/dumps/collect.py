"""Write what a compilation for h100 leaves of some functions of tests/data/launched.py.

    python tests/dumps/collect.py

Each folder is a job's folder as the worker leaves it, but for the paths of this machine. Made with jax 0.10.2.
"""

import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from launching import spec  # noqa: E402

from fusionlint.compiling.artifacts import Artifacts  # noqa: E402
from fusionlint.compiling.entry import parse_spec  # noqa: E402
from fusionlint.compiling.jobs import compile_many  # noqa: E402
from fusionlint.compiling.targets import get  # noqa: E402

CHOSEN = ("scan", "branch")
KEPT = ("after.hlo.txt", "before.hlo.txt", "artifacts.json", "dump/*")


def keep(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    for path in (path for pattern in KEPT for path in folder.glob(pattern)):
        text = path.read_text(encoding="utf-8").replace(f"{HERE.parent / 'data'}/", "")
        name = re.sub(r"^module_\d+", "module_0001", path.name)
        target = to / path.relative_to(folder).with_name(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The text of the module, once more, in the log's last field.
        target.write_text(re.sub(r'^hlo_module_before_fusion: ".*"\n', "", text, flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    with TemporaryDirectory() as home:
        entries = [parse_spec(spec(name)) for name in CHOSEN]
        for name, result in zip(CHOSEN, compile_many(entries, get("h100"), outdir=Path(home, "jobs")), strict=True):
            assert isinstance(result, Artifacts), result
            keep(result.folder, HERE / name)
