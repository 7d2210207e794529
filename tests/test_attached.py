"""Which target is meant: the named one, the attached device's, or the default."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusionlint.compiling import attached as rooms
from fusionlint.compiling.attached import chosen
from fusionlint.compiling.targets import TARGETS, Target, TargetError, environment, get, missing, of_kind

pytestmark = pytest.mark.compilers

KINDS = {
    "NVIDIA A100-SXM4-80GB": "a100",
    "NVIDIA H100 80GB HBM3": "h100",
    "NVIDIA H200": "h200",
    "NVIDIA B200": "b200",
    "NVIDIA L4": "l4",
    "NVIDIA GeForce RTX 4090": "rtx4090",
    "TPU v4": "v4",
    "TPU v5 lite": "v5e",
    "TPU v5": "v5p",
    "TPU v6 lite": "v6e",
    "TPU7x": "tpu7x",
    "cpu": "cpu",
}


def test_a_target_that_is_named_twice_is_one() -> None:
    """Also by what is attached: nothing is to be compiled and told twice."""
    attached = {"cuda": "NVIDIA H100 80GB HBM3"}
    assert [one.name for one in chosen(["cpu", "h100", "cpu"], {})] == ["cpu", "h100"]
    assert [one.name for one in chosen(["gpu", "h100"], attached)] == ["h100"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_that_jax_gives_devices_are_known(kind: str) -> None:
    target = of_kind(kind)
    assert target is not None
    assert target.name == KINDS[kind]


@pytest.mark.parametrize("kind", ["NVIDIA A100-PCIE-40GB", "NVIDIA H100 PCIe", "NVIDIA L40S", "TPU v3", "NVIDIA A10G"])
def test_another_device_of_the_family_has_not_its_figures(kind: str) -> None:
    assert of_kind(kind) is None


def test_names_are_targets_compiled_without_the_device() -> None:
    assert chosen(["h100", "v5e"], {}) == [get("h100"), get("v5e")]


def test_an_attached_device_is_used_when_it_is_the_target_and_only_then() -> None:
    h200 = {"cuda": "NVIDIA H200"}
    assert chosen(["h200", "h100", "cpu"], h200) == [get("h200")._replace(attached=True), get("h100"), get("cpu")]
    assert chosen(["gpu"], h200) == [get("h200")._replace(attached=True)]
    assert chosen([], {"tpu": "TPU v5 lite"}) == [get("v5e")._replace(attached=True)]


def test_an_attached_device_that_is_not_in_the_table_is_a_target_without_figures() -> None:
    (found,) = chosen(["gpu"], {"cuda": "NVIDIA A10G"})
    assert (found.name, found.platform, found.what, found.attached) == ("gpu", "cuda", "NVIDIA A10G", True)
    assert found.memory_bandwidth is None
    assert chosen(["l4"], {"cuda": "NVIDIA A10G"}) == [get("l4")]


@pytest.mark.parametrize(("name", "says"), [("gpu", "such as h100"), ("tpu", "such as v5e")])
def test_what_is_not_attached_is_one_line_that_names_another(name: str, says: str) -> None:
    with pytest.raises(TargetError, match=f"jax finds no {name.upper()} here") as caught:
        chosen([name], {})
    assert says in str(caught.value)


def test_the_default_is_the_attached_device_else_h100_else_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"jax": "0.10.2", "jaxlib": "0.10.2", "jax-cuda13-plugin": "0.10.2"}

    def version(name: str) -> str:
        try:
            return installed[name]
        except KeyError:
            raise importlib.metadata.PackageNotFoundError(name) from None

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert chosen([], {"cuda": "NVIDIA L4"})[0].name == "l4"
    assert chosen([], {}) == [get("h100")]
    del installed["jax-cuda13-plugin"]
    assert chosen([], {}) == [get("cpu")]


def test_without_any_sign_of_a_driver_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_SIGNS", ("/nowhere/at/all",))
    monkeypatch.setattr(rooms.subprocess, "run", None)
    assert rooms.attached.__wrapped__() == {}


def test_jax_is_asked_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr(rooms, "_SIGNS", ("/",))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert rooms.attached.__wrapped__() == {}  # a CPU is no device that is attached
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "fusionlint.compiling.attached"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {}


def test_a_driver_that_fails_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    monkeypatch.setattr(rooms, "_SIGNS", ("/",))
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    if Path("/dev/nvidia0").exists():
        pytest.skip("a GPU is attached")
    assert rooms.attached.__wrapped__() == {}


def test_a_worker_on_the_device_uses_it_and_leaves_room_for_others() -> None:
    found = environment(get("h100")._replace(attached=True))
    assert found["JAX_PLATFORMS"] == "cuda,cpu"
    assert found["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert found["JAX_ENABLE_COMPILATION_CACHE"] == "false"


def test_a_target_survives_its_journey_as_text() -> None:
    for target in TARGETS:
        assert Target(**json.loads(json.dumps(target._asdict()))) == target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_has_numbers_in_the_pages_of_its_platform(target: Target) -> None:
    near = get(target.measured_as)
    assert near.platform == target.platform
    assert missing(near) is None or missing(target) is not None
