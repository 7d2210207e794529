"""Dotted names and the modules that they begin with."""

from __future__ import annotations

from collections.abc import Mapping

# What these call their functions is known, and means the same where their source happens to be among the files.
LIBRARIES = frozenset(("jax", "flax", "equinox", "haiku", "optax", "numpy"))
# What an editor imports from where jax defines it, and what everybody calls that.
_DEFINED_IN = {
    "jax._src.api.": "jax.",
    "jax._src.numpy.lax_numpy.": "jax.numpy.",
    "jax._src.lax.lax.": "jax.lax.",
    "jax._src.lax.control_flow.": "jax.lax.",
    "jax._src.random.": "jax.random.",
    "jax._src.nn.functions.": "jax.nn.",
}

# What folder is put on the path of imports, most of all.
_ABOVE = "src."


def public(name: str) -> str:
    """`jax.vmap`, of `jax._src.api.vmap`."""
    if not name.startswith("jax._src."):
        return name
    module = next((one for one in _DEFINED_IN if name.startswith(one)), "")
    return f"{_DEFINED_IN.get(module, '')}{name.removeprefix(module)}"


def modules_of(names: Mapping[str, str]) -> dict[str, str]:
    """Dotted module name -> path, of the module names of paths; the first file of a name wins. A package in a folder
    without an __init__.py may be one of a namespace, `google` of google/cloud, and is found by both names; so is what
    stands in a src that has one, which is seldom meant to be imported from above."""
    known = {module: path for path, module in reversed([*names.items()]) if module}
    for path, module in names.items():
        if longer := _in_namespace(path, module):
            known.setdefault(longer, path)
        if module.startswith(_ABOVE):
            known.setdefault(module.removeprefix(_ABOVE), path)
    return known


def _in_namespace(path: str, module: str) -> str:
    """`mujoco.mjx.types` of mjx/mujoco/mjx/types.py, whose package is called mjx by itself; "" where no folder is
    around it that could be imported."""
    inside = path.removesuffix(".py").removesuffix(".pyi").removesuffix("/__init__")
    folder = inside.removesuffix(module.replace(".", "/"))
    around = folder.rstrip("/").rpartition("/")[2]
    return f"{around}.{module}" if "." in module and folder != inside and around.isidentifier() else ""


def home_of(name: str, modules: Mapping[str, str]) -> tuple[str | None, str]:
    """The file among `modules` that a dotted name begins with, and what is left of the name."""
    module, rest = name, ""
    while module:
        if module in modules:
            return modules[module], rest
        module, _, last = module.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    return None, name


def is_elsewhere(name: str, module: str) -> bool:
    """Whether `name`, read in `module`, is of a library that is known by its public names; to the library's own files
    it is not."""
    package = name.partition(".")[0]
    return package in LIBRARIES and module.partition(".")[0] != package
