"""The table of targets, and what is said when a compiler is not installed."""

from __future__ import annotations

import importlib.metadata

import pytest

from fusionlint.compiling.targets import TARGETS, TargetError, environment, get, missing, versions


def installed(monkeypatch: pytest.MonkeyPatch, **found: str) -> None:
    """Pretend that these distributions are installed, and no others."""

    def version(name: str) -> str:
        if name.replace("-", "_") not in found:
            raise importlib.metadata.PackageNotFoundError(name)
        return found[name.replace("-", "_")]

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_targets_are_found_by_name() -> None:
    assert [get(target.name) for target in TARGETS] == list(TARGETS)


def test_capitals_are_no_other_name() -> None:
    assert get("H100") == get("h100")


def test_an_unknown_target_names_the_nearest_or_those_there_are() -> None:
    with pytest.raises(TargetError, match=r"^there is no target 'h1000'; did you mean 'h100'\?$"):
        get("h1000")
    with pytest.raises(TargetError, match=r"there is no target 'abacus'; there are cpu, a100, .*, tpu7x, gpu, tpu$"):
        get("abacus")


@pytest.mark.parametrize("several", [["cpu", "h100"], ("cpu",), None])
def test_several_at_once_are_told_to_be_asked_for_one_by_one(several: object) -> None:
    with pytest.raises(TypeError, match=r"^target is the name of one, not .+: ask once for each$"):
        get(several)  # type: ignore[arg-type]


def test_figures_have_a_source_and_the_right_magnitude() -> None:
    for target in TARGETS:
        assert target.source
        assert target.memory_bandwidth is None or 1e11 < target.memory_bandwidth < 1e14
        assert target.launch_us is None or 0.1 < target.launch_us < 20
        assert bool(target.device) == (target.platform != "cpu")


def test_a_cuda_target_reckons_with_the_bandwidth_its_compiler_is_told() -> None:
    for target in TARGETS:
        if target.platform == "cuda":
            assert f"memory_bandwidth: {target.memory_bandwidth:.0f}\n" in target.device


def test_nothing_is_missing_where_the_compiler_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, jax="0.7.0", jaxlib="0.7.0", jax_cuda12_plugin="0.7.0", libtpu="0.0.17")
    assert [missing(target) for target in TARGETS] == [None] * len(TARGETS)


def test_without_jax_the_explain_extra_is_named_for_every_target(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, libtpu="0.0.17")
    said = {missing(target) for target in TARGETS}
    assert said == {"jax is not installed: pip install 'fusionlint[explain]'"}
    assert versions(get("v5e")) == {"libtpu": "0.0.17"}


@pytest.mark.parametrize(("name", "extra"), [("h100", "cuda"), ("v5e", "tpu")])
def test_without_its_compiler_the_one_command_is_named(monkeypatch: pytest.MonkeyPatch, name: str, extra: str) -> None:
    installed(monkeypatch, jax="0.7.0", jaxlib="0.7.0")
    assert missing(get(name)) == f"the compiler for {name} is not installed: pip install 'fusionlint[{extra}]'"


def test_a_cuda_plugin_of_another_version_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, jax="0.7.1", jaxlib="0.7.1", jax_cuda12_plugin="0.7.0")
    assert missing(get("h100")) == (
        "jax-cuda12-plugin 0.7.0 does not go with jax 0.7.1: pip install 'jax-cuda12-plugin==0.7.1'"
    )


def test_no_worker_looks_for_a_driver_or_takes_a_cached_executable() -> None:
    for target in TARGETS:
        found = environment(target)
        assert found["JAX_PLATFORMS"] == "cpu"
        assert found["JAX_ENABLE_COMPILATION_CACHE"] == "false"


def test_only_the_cpu_worker_logs_fusion_decisions_and_only_the_tpu_worker_loads_libtpu_beside_others() -> None:
    assert "instruction_fusion=3" in environment(get("cpu"))["TF_CPP_VMODULE"]
    assert "TF_CPP_VMODULE" not in environment(get("h100"))
    assert environment(get("v5e"))["ALLOW_MULTIPLE_LIBTPU_LOAD"] == "1"
