"""layer-loop beside a scan, for plain layers, and for recurrences that are no layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

ONLY = Scope(("layer-loop",))
BLOCK = """\
import jax
import flax.linen as nn

class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        y = nn.SelfAttention(8)(y)
        return x + nn.Dense(64)(nn.relu(nn.Dense(256)(y)))

"""
MODEL = """\
class Model(nn.Module):
    depth: int = 12
    {field}

    @nn.compact
    def __call__(self, x, cfg, {parameter}):
        {setting}
        if {test}:
            {one}
        else:
            {other}
        return x
"""
LOOP = "for i in range(self.depth): x = Block(name=f'block_{i}')(x)"
SCAN = "x, _ = nn.scan(Block, variable_axes={'params': 0}, length=self.depth)()(x)"


def found(test: str, one: str, other: str, field: str = "", parameter: str = "y=0", setting: str = "") -> int:
    model = MODEL.format(field=field, parameter=parameter, setting=setting, test=test, one=one, other=other)
    loop = "for i in range(self.depth):\n                x = Block(name=f'block_{i}')(x)"
    return len(check_text((BLOCK + model.replace(LOOP, loop)).encode(), "m.py", ONLY))


@pytest.mark.parametrize(
    "field",
    ["scan: bool = False", "scan: bool = False\n    remat: bool = True", "other: bool = True\n    scan: bool = False"],
)
def test_a_loop_that_runs_unless_somebody_asks_for_the_scan_is_found(field: str) -> None:
    assert found("self.scan", SCAN, LOOP, field) == 1
    assert found("not self.scan", LOOP, SCAN, field) == 1


def test_a_loop_that_somebody_has_to_ask_for_is_an_option() -> None:
    assert found("self.scan", SCAN, LOOP, "scan: bool = True") == 0
    assert found("not self.scan", LOOP, SCAN, "scan: bool = True") == 0
    assert found("scan", SCAN, LOOP, parameter="scan=True") == 0
    assert found("scan", SCAN, LOOP, parameter="scan=False") == 1


def test_what_nobody_sees_a_default_of_is_an_option() -> None:
    assert found("cfg.scan", SCAN, LOOP) == 0
    assert found("isinstance(y, tuple)", SCAN, LOOP) == 0


def test_a_branch_without_a_scan_says_nothing() -> None:
    assert found("cfg.large", "x = nn.Dense(8)(x)", LOOP) == 1


def test_the_default_of_a_configuration_in_the_file_counts() -> None:
    config = "class Config:\n    scan: bool = {}\n\n"
    for default, number in ((True, 0), (False, 1)):
        model = MODEL.format(
            field="",
            parameter="y=0",
            setting="",
            test="cfg.scan",
            one=SCAN,
            other=LOOP.replace(": x", ":\n                x"),
        )
        text = BLOCK + config.format(default) + model
        assert len(check_text(text.encode(), "m.py", ONLY)) == number


def test_a_convolution_with_its_norm_and_activation_is_a_plain_layer() -> None:
    plain = """\
class Conv(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.Conv(64, (3, 3))(x)
        y = nn.BatchNorm()(y)
        return nn.relu(y)

class Model(nn.Module):
    depth: int
    @nn.compact
    def __call__(self, x):
        for _ in range(self.depth):
            x = {}()(x)
        return x
"""
    assert check_text((BLOCK + plain.format("Conv")).encode(), "m.py", ONLY) == ()
    assert len(check_text((BLOCK + plain.format("Block")).encode(), "m.py", ONLY)) == 1


def test_a_recurrence_over_two_values_is_no_stack_of_layers() -> None:
    head = """\
import jax
import jax.numpy as jnp

def block(x, w):
    y = jnp.tanh(x @ w)
    y = y - jnp.mean(y)
    return x + jnp.tanh(y) * jnp.std(y)

@jax.jit
def run(x, z, ws, n):
"""
    one = "    for i in range(n):\n        x = block(x, ws[i])\n    return x\n"
    two = "    for i in range(n):\n        x = block(x, ws[i])\n        z = block(z, x)\n    return z\n"
    apart = "    for i in range(n):\n        x = z[0]\n        x = block(x, ws[i])\n    return x\n"
    assert len(check_text((head + one).encode(), "m.py", ONLY)) == 1
    assert check_text((head + apart).encode(), "m.py", ONLY) == ()  # each begins anew
    assert check_text((head + two).encode(), "m.py", ONLY) == ()


@pytest.mark.parametrize(
    ("width", "count"),
    [("self.width * self.multipliers[self.level]", 0), ("x.shape[-1]", 1), ("self.width", 1)],
)
def test_a_level_of_a_pyramid_begins_with_another_width(width: str, count: int) -> None:
    code = f"""\
class Level(nn.Module):
    level: int
    depth: int = 8

    @nn.compact
    def __call__(self, x):
        width = {width}
        for _ in range(self.depth):
            x = Block(width)(x)
        return x
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(("given", "count"), [("normalizer", 0), ("conv_cls", 0), ("block_cls", 1)])
def test_a_norm_that_a_module_was_given_is_no_block(given: str, count: int) -> None:
    code = f"""\
class Pooled(nn.Module):
    stages: int
    {given}: type

    @nn.compact
    def __call__(self, x, y):
        path = x
        for _ in range(self.stages):
            path = self.{given}()(path, y)
            x = x + path
        return x
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(
    ("built", "count"),
    [
        ("Model(depth=config.blocks)", 0),
        ("Model(depth=config.layers)", 1),
        ("Model(depth=config.blocks), Model(depth=config.layers)", 1),
        ("Model(depth=config.blocks), Model(config.unknown)", 1),
        ("Model(depth=3)", 0),
        ("Model(depth=n)", 0),
        ("config", 1),
    ],
)
def test_a_few_layers_by_what_the_module_is_built_with(built: str, count: int) -> None:
    code = f"""\
class Config:
    blocks: int = 3
    layers: int = 12

class Model(nn.Module):
    depth: int

    def setup(self):
        self.blocks = [Block() for _ in range(self.depth)]

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x

def make(config, n=3):
    return {built}
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == count


DEEP = """\
class Model(nn.Module):
    width: int
    depth: int

    @nn.compact
    def __call__(self, x):
        for _ in range(self.depth):
            x = Block(self.width)(x)
        return x

"""


@pytest.mark.parametrize(
    ("handed", "count"),
    [
        ("16, self.few", 0),
        ("16, depth=self.few", 0),
        ("16, self.many", 1),
        ("16, self.unknown", 1),
        ("self.few, 16", 1),
    ],
)
def test_a_field_that_another_module_hands_on_has_the_default_it_has_there(handed: str, count: int) -> None:
    whole = f"""\
class Whole(nn.Module):
    unknown: int
    few: int = 3
    many: int = 12

    def __call__(self, x):
        return Model({handed})(x)
"""
    assert len(check_text((BLOCK + DEEP + whole).encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(
    ("lifted", "made", "count"),
    [
        ("nn.vmap(Model, variable_axes={'params': 0})", "Lifted(16, 3)", 0),
        ("nn.vmap(Model, variable_axes={'params': 0})", "Lifted(16, 12)", 1),
        ("nn.vmap(Model, variable_axes={'params': 0})", "Lifted(16, 3), Model(16, 12)", 1),
        ("functools.partial(Model, depth=12)", "Lifted(16)", 1),
    ],
)
def test_what_a_transform_makes_of_a_module_is_built_as_that_is(lifted: str, made: str, count: int) -> None:
    code = f"Lifted = {lifted}\n\ndef make():\n    return {made}\n"
    assert len(check_text(("import functools\n" + BLOCK + DEEP + code).encode(), "m.py", ONLY)) == count


@pytest.mark.parametrize(
    ("model", "path", "count"),
    [
        ("Model", "m.py", 1),
        ("Critic", "m.py", 0),
        ("GaussianPolicy", "m.py", 0),
        ("MLPResNet", "m.py", 0),
        ("Simple", "policy.py", 0),
        ("MLPerfModel", "m.py", 1),
    ],
)
def test_a_network_of_an_agent_has_few_layers(model: str, path: str, count: int) -> None:
    code = DEEP.replace("Model", model)
    assert len(check_text((BLOCK + code).encode(), path, ONLY)) == count


@pytest.mark.parametrize(
    ("count", "setting", "found"),
    [("config.blocks", "width=8", 0), ("config.layers", "width=8", 1), ("config.layers", "hidden_irreps=kinds", 0)],
)
def test_layers_that_a_configuration_counts_by_its_default_and_what_they_are_given(
    count: str, setting: str, found: int
) -> None:
    code = f"""\
class Config:
    blocks: int = 3
    layers: int = 12

class Model(nn.Module):
    config: Config

    @nn.compact
    def __call__(self, x, kinds):
        for _ in range(self.{count}):
            x = Block({setting})(x)
        return x
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == found


@pytest.mark.parametrize(("joined", "count"), [("axis=-1", 0), ("axis=1", 1), ("-1", 0)])
def test_what_is_joined_along_the_last_axis_is_wider_than_what_a_layer_hands_on(joined: str, count: int) -> None:
    code = f"""\
class Up(nn.Module):
    width: int
    depth: int

    @nn.compact
    def __call__(self, x, skip):
        x = jax.numpy.concatenate([x, skip], {joined})
        for _ in range(self.depth):
            x = Block(self.width)(x)
        return x
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == count


FILLED = """\
import equinox as eqx
import jax

class Block(eqx.Module):
    def __init__(self, width, key=None):
        self.first, self.second, self.norm = eqx.nn.Linear(width, 64), eqx.nn.Linear(64, width), eqx.nn.LayerNorm(width)

    def __call__(self, x):
        return x + self.second(jax.nn.gelu(self.first(self.norm(x)))) * self.norm(x) + self.first(x).sum(), x

class Model(eqx.Module):
    def __init__(self, depth, widths, key):
        keys = jax.random.split(key, depth)
        blocks = []
        {fill}
        self.blocks = tuple(blocks)

    def __call__(self, x):
        for block in self.blocks:
            {apply}
        return x
"""


@pytest.mark.parametrize(
    ("fill", "times"),
    [
        ("for key in keys: blocks.append(Block(8, key=key))", 1),
        ("for key in keys: blocks.append(Block(8, key=key))\n        blocks.append(Block(16))", 0),
        ("for width in widths: blocks.append(Block(width))", 0),
        ("for i in range(depth):\n            width = widths[i]\n            blocks.append(Block(width))", 0),
        ("for i in range(depth):\n            if i: blocks.append(Block(8))", 0),
    ],
)
def test_layers_that_are_appended_to_a_list_one_by_one_are_found_where_all_are_alike(fill: str, times: int) -> None:
    text = FILLED.format(fill=fill.replace(": blocks", ":\n            blocks", 1), apply="x, _ = block(x)")
    text = text.replace("if i:\n            blocks", "if i:\n                blocks")
    assert len(check_text(text.encode(), "m.py", ONLY)) == times


@pytest.mark.parametrize(
    ("apply", "times"),
    [
        ("x, weights = block(x)", 1),
        ("outputs = block(x); x = outputs[0]", 1),
        ("outputs = block(x=x); x = outputs", 1),
        ("outputs = block(x); x = outputs[1]", 0),
        ("outputs = block(x); x = outputs[0] + x", 0),
        ("outputs = block(x)", 0),
    ],
)
def test_what_goes_round_is_all_or_the_first_that_a_layer_returns(apply: str, times: int) -> None:
    text = FILLED.format(
        fill="blocks = [Block(8, key=key) for key in keys]", apply=apply.replace("; ", "\n            ")
    )
    assert len(check_text(text.encode(), "m.py", ONLY)) == times


@pytest.mark.parametrize(("part", "number"), [("self.heads[i](x)", 0), ("self.head(x)", 1), ("self.scales[i]", 1)])
def test_layers_with_parts_of_their_own_that_are_there_already_are_not_alike(part: str, number: int) -> None:
    code = f"""
class Model(nn.Module):
    depth: int = 12

    @nn.compact
    def __call__(self, x):
        kept = []
        for i in range(self.depth):
            x = Block(name=f"block_{{i}}")(x)
            kept.append({part})
        return x, kept
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == number


EQUINOX = """\
import jax
import equinox as eqx

class Block(eqx.Module):
    attention: eqx.Module
    mlp: eqx.nn.MLP
    one: eqx.nn.LayerNorm
    two: eqx.nn.LayerNorm

    def __init__(self, key, dim):
        k1, k2 = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(8, dim, key=k1)
        self.mlp = eqx.nn.MLP(dim, dim, dim, 2, key=k2)
        self.one, self.two = eqx.nn.LayerNorm(dim), eqx.nn.LayerNorm(dim)

    def __call__(self, x):
        x = x + self.attention(jax.vmap(self.one)(x))
        return x + jax.vmap(self.mlp)(jax.vmap(self.two)(x))

class Decoder(eqx.Module):
    blocks: list[Block]

    def __init__(self, key, depth, dim):
        keys = jax.random.split(key, depth)
        {built}

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
LISTS = {
    "by position": ("self.blocks = [Block(k, dim) for k in keys]", 1),
    "by name": ("self.blocks = [Block(key=k, dim=dim) for k in keys]", 1),
    "appended": ("self.blocks = []\n        for subkey in keys: self.blocks.append(Block(subkey, dim))", 1),
    "of other widths": ("self.blocks = [Block(key, k) for k in widths]", 0),
}


@pytest.mark.parametrize(("built", "number"), LISTS.values(), ids=LISTS)
def test_a_key_is_a_layers_own_wherever_it_stands(built: str, number: int) -> None:
    code = EQUINOX.format(built=built.replace("for subkey in keys: ", "for subkey in keys:\n            "))
    assert len(check_text(code.encode(), "m.py", ONLY)) == number


@pytest.mark.parametrize(
    ("handed", "count"),
    [("params.blocks", 0), ("params.layers", 1), ("params.unknown", 1), ("count", 1)],
)
def test_a_few_layers_by_the_settings_of_another_file(handed: str, count: int, tmp_path: Path) -> None:
    """The constructor stands in one file, its only call and the dataclass with the number in another."""
    model = """\
from flax import nnx

class Model(nn.Module):
    def __init__(self, width, depth):
        self.blocks = nnx.List([Block() for _ in range(depth)])

    def __call__(self, x, start):
        if start is None:
            for block in self.blocks:
                x = block(x)
        else:
            for block in self.blocks:
                x = block(x, start)
        return x
"""
    config = f"""\
from dataclasses import dataclass
from model import Model

@dataclass
class Params:
    blocks: int = 2
    layers: int = 12

def make(params, count):
    return Model(8, depth={handed})
"""
    files = {"model.py": BLOCK + model, "config.py": config, "pyproject.toml": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    findings = check_files([tmp_path / "model.py", tmp_path / "config.py"], ONLY).findings
    assert len(findings) == count  # the branches of one `if` are told once


def test_a_loop_that_is_no_stack_of_layers_does_not_tell_of_the_other_branch() -> None:
    assert found("cfg.large", "for i in range(self.depth): y = (y, x)", LOOP) == 1


@pytest.mark.parametrize(
    ("depth", "counted", "count"),
    [
        ("4", "self.config.depth", 0),
        ("12", "self.config.depth", 1),
        ("4", "self.config.width", 1),
        ("4", "self.other.depth", 1),
    ],
)
def test_the_class_of_a_configuration_in_another_file_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: str, counted: str, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = (
        f"import dataclasses\n\n@dataclasses.dataclass\nclass Config:\n    depth: int = {depth}\n    width: int = 64\n"
    )
    model = f"""\
class Model(nn.Module):
    config: Config
    other: object

    @nn.compact
    def __call__(self, x):
        for i in range({counted}):
            x = Block(name=f"block_{{i}}")(x)
        return x
"""
    Path("settings.py").write_text(settings)
    Path("model.py").write_text("from settings import Config\n" + BLOCK + model)
    assert len(check_files([Path("model.py"), Path("settings.py")], ONLY).findings) == count


BESIDE_A_SCAN = """
import flax.linen as nn

class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.SelfAttention(8)(nn.LayerNorm()(x))
        return x + nn.Dense(64)(nn.relu(nn.Dense(256)(y))), None

class Decoder(nn.Module):
    depth: int
    scan: bool = False

    @nn.compact
    def __call__(self, x):
        if self.scan:
            blocks = [nn.scan(Block, length=self.depth)()]
        else:
            blocks = [Block() for _ in range(self.depth)]
        for block in blocks:
            x, _ = block(x)
        return x
"""


def test_where_the_scan_stands_beside_its_flag_is_told() -> None:
    (finding,) = check_text(BESIDE_A_SCAN.encode(), "m.py", Scope(("layer-loop",)))
    assert finding.suggestion is not None
    assert "the scan that stands beside it, as `self.scan` says" in finding.suggestion.text


@pytest.mark.parametrize(("given", "count"), [("scan=True", 0), ("", 1), ("scan=args.scan", 1)])
def test_a_loop_that_all_users_switch_off_is_never_compiled(tmp_path: Path, given: str, count: int) -> None:
    (tmp_path / "decoder.py").write_text(BESIDE_A_SCAN)
    (tmp_path / "use.py").write_text(f"import decoder\n\ndef model(args):\n    return decoder.Decoder(18, {given})\n")
    found = check_files(sorted(tmp_path.glob("*.py")), Scope(("layer-loop",))).findings
    assert len(found) == count


TWICE = """\
class Model(nn.Module):
    depth: int

    def setup(self):
        self.blocks = [Block() for _ in range(self.depth)]

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def decode(self, x):
        for block in self.blocks:
            x = block({given})
        return x
"""


@pytest.mark.parametrize("given", ["x", "x, None"])
def test_the_same_layers_are_told_of_once(given: str) -> None:
    (found,) = check_text((BLOCK + TWICE.format(given=given)).encode(), "m.py", ONLY)
    assert found.location.line == (BLOCK + TWICE).partition("for block")[0].count("\n") + 1


@pytest.mark.parametrize(
    ("by", "count"),
    [
        ('nn.scan, variable_broadcast="params", in_axes=0', 0),
        ('nn.scan, variable_axes={"params": 0}, in_axes=0', 1),
        ("jax.jit, static_argnums=0", 1),
    ],
)
def test_the_layers_of_a_step_in_time_are_gone_through_in_each_step(by: str, count: int) -> None:
    code = f"""\
import functools

class Model(nn.Module):
    depth: int

    def setup(self):
        self.blocks = [Block(self.depth) for _ in range(self.depth)]

    @functools.partial({by})
    def __call__(self, x, row):
        x = x + row
        for block in self.blocks:
            x = block(x)
        return x, x
"""
    assert len(check_text((BLOCK + code).encode(), "m.py", ONLY)) == count
