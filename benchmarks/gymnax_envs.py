"""Launches and compile seconds of gymnax's environments as they are: one step of 4096 of them under jax.vmap.

    pip install -e '.[cuda,examples]'
    python benchmarks/gymnax_envs.py [--target h100] [NAME...]

Beside our launches stand those counted before there was fusionlint: the instructions at the top of the optimized HLO
that do work, for h100, with the versions of MEASURED_WITH.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fusionlint.compiling import targets
from fusionlint.compiling.artifacts import Artifacts, CompileError
from fusionlint.compiling.entry import parse_spec
from fusionlint.compiling.jobs import compile_many

STEPS = Path(__file__).with_name("gymnax_steps.py")
ENVIRONMENTS = {
    "CartPole": "classic_control.cartpole.CartPole",
    "Pendulum": "classic_control.pendulum.Pendulum",
    "Acrobot": "classic_control.acrobot.Acrobot",
    "MountainCar": "classic_control.mountain_car.MountainCar",
    "Asterix": "minatar.asterix.MinAsterix",
    "Breakout": "minatar.breakout.MinBreakout",
    "Freeway": "minatar.freeway.MinFreeway",
    "SpaceInvaders": "minatar.space_invaders.MinSpaceInvaders",
    "Seaquest": "minatar.seaquest.MinSeaquest",
    "FourRooms": "misc.rooms.FourRooms",
    "Reacher": "misc.reacher.Reacher",
    "Pong": "misc.pong.Pong",
}
MEASURED_WITH = {"jax": "0.10.2", "gymnax": "1.0.1"}
ON_H100 = {
    "CartPole": 7,
    "Pendulum": 8,
    "Acrobot": 12,
    "MountainCar": 6,
    "Asterix": 67,
    "Breakout": 18,
    "Freeway": 74,
    "SpaceInvaders": 21,
    "Seaquest": 145,
    "FourRooms": 11,
    "Reacher": 9,
    "Pong": 12,
}


def environment(where: str) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """The step of the environment at "module.Class" of gymnax.environments, and what makes arguments for it of a
    key."""
    module, _, name = where.rpartition(".")
    # The registry leaves Seaquest out.
    env = getattr(importlib.import_module(f"gymnax.environments.{module}"), name)()
    params = env.default_params

    def start(key: Any) -> Any:
        _, state = env.reset_env(key, params)
        return key, state, env.action_space(params).sample(key)

    return env.step, start


def steps(names: Sequence[str], target: targets.Target) -> Iterator[tuple[str, Artifacts]]:
    """Every environment's name, and what a step of it compiles to. Raises CompileError."""
    for name, made in zip(names, compile_many([parse_spec(f"{STEPS}:{n}") for n in names], target), strict=True):
        if isinstance(made, CompileError):
            raise made
        yield name, made


def main() -> None:
    from fusionlint.explained import explain

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ENVIRONMENTS)}; by default all")
    parser.add_argument("--target", default="h100")
    options = parser.parse_args()
    target = targets.get(options.target)
    print(f"| one step of 4096 | {target.name}: launches | counted before | compiled in |\n|---|---|---|---|")
    for name, made in steps(options.names or [*ENVIRONMENTS], target):
        before = ON_H100[name] if target.name == "h100" else ""
        print(f"| {name} | {explain(made).totals.launches:g} | {before} | {made.compile_seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
