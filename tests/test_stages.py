"""stages(): what is counted in each text, and what is told to have gone."""

from __future__ import annotations

from fusionlint.hlo import parse as hlo
from fusionlint.hlo.kernels import kernels
from fusionlint.stages import Stages, stages

JAXPR = """{ lambda ; a:f32[512]. let
    b:f32[512] = sin a
    c:f32[] d:f32[] = cond[
      branches=(
        { lambda ; e:f32[512]. let f:f32[] = reduce_sum[axes=(0,)] e in (f, f) }
      )
    ] b
    debug_print[
      fmt={}
      in_tree=PyTreeDef(((*,), {}))
    ] c
    _:f32[512] = mul b 2.0:f32[]
  in (c,) }"""

STABLEHLO = """module @jit_f {
  func.func public @main(%arg0: tensor<512xf32>) -> tensor<f32> {
    %0 = stablehlo.sine %arg0 : tensor<512xf32>
    %1:2 = "stablehlo.case"(%0) ({
      %3 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0]
      stablehlo.return %3, %3 : tensor<f32>, tensor<f32>
    }) : (tensor<i32>) -> (tensor<f32>, tensor<f32>)
    return %1#0 : tensor<f32>
  }
}"""

AFTER = """HloModule jit_f, is_scheduled=true

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %s = f32[8]{0} sine(%p)
  %c = f32[8]{0} cosine(%s)
  ROOT %a = f32[8]{0} add(%s, %c)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused
}
"""


def counted(*before: str, helper: str = "") -> Stages:
    *inner, root = before
    lines = "\n".join(f"  {line}" for line in inner)
    text = f"HloModule jit_f\n{helper}\nENTRY main {{\n  x = f32[8]{{0}} parameter(0)\n{lines}\n  ROOT {root}\n}}\n"
    after = hlo.parse(AFTER)
    return stages(JAXPR, STABLEHLO, hlo.parse(text), after, kernels(after))


def test_operations_of_a_jaxpr_are_counted_inner_ones_and_those_without_results_too() -> None:
    found = counted("s = f32[8]{0} sine(x)").jaxpr
    assert found == {"sin": 1, "cond": 1, "reduce_sum": 1, "debug_print": 1, "mul": 1}


def test_operations_of_stablehlo_are_counted_without_returns_and_reducers() -> None:
    assert counted("s = f32[8]{0} sine(x)").stablehlo == {"sine": 1, "case": 1, "reduce": 1}


def test_fusion_bodies_are_counted_and_kernels_apart() -> None:
    found = counted("s = f32[8]{0} sine(x)")
    assert found.after == {"sine": 1, "cosine": 1, "add": 1}
    assert found.kernels == {"loop": 1}
    assert found.removed.fused == 2


def test_a_function_called_twice_counts_twice() -> None:
    helper = "\nf {\n  p = f32[8]{0} parameter(0)\n  ROOT t = f32[8]{0} tanh(p)\n}\n"
    found = counted("a = f32[8]{0} call(x), to_apply=f", "b = f32[8]{0} call(a), to_apply=f", helper=helper)
    assert found.before == {"tanh": 2}


def test_operations_that_repeat_another_are_duplicates_in_a_chain_too() -> None:
    found = counted(
        "s1 = f32[8]{0} sine(x)",
        's2 = f32[8]{0} sine(x), metadata={op_name="elsewhere"}',
        "c1 = f32[8]{0} cosine(s1)",
        "c2 = f32[8]{0} cosine(s2)",
        "a = f32[8]{0} add(c1, c2)",
    )
    assert found.removed.duplicates == 2


def test_different_constants_and_attributes_are_no_duplicates() -> None:
    found = counted(
        "k1 = f32[8]{0} constant({1, 2, 3, 4, 5, 6, 7, 8})",
        "k2 = f32[8]{0} constant({1, 2, 3, 4, 5, 6, 7, 9})",
        "big1 = f32[8]{0} constant({...})",
        "big2 = f32[8]{0} constant({...})",
        "a = f32[8]{0} add(x, k1)",
        "b = f32[8]{0} add(a, k2)",
        "c = f32[8]{0} add(x, big1)",
        "d = f32[8]{0} add(x, big2)",
        "e = pred[8]{0} compare(c, d), direction=LT",
        "f = pred[8]{0} compare(c, d), direction=GT",
        "t = (f32[8]{0}, pred[8]{0}, pred[8]{0}) tuple(b, e, f)",
    )
    assert found.removed.duplicates == 0


def test_random_numbers_and_custom_calls_are_no_duplicates() -> None:
    found = counted(
        's1 = f32[8]{0} custom-call(x), custom_call_target="k"',
        's2 = f32[8]{0} custom-call(x), custom_call_target="k"',
        "a = f32[8]{0} add(s1, s2)",
    )
    assert found.removed.duplicates == 0


def test_operations_on_constants_alone_are_told() -> None:
    found = counted(
        "k = f32[] constant(2)",
        "c = f32[] cosine(k)",
        "w = f32[8]{0} broadcast(c), dimensions={}",
        "m = f32[8]{0} multiply(w, w)",
        "a = f32[8]{0} add(x, m)",
    )
    assert found.removed.on_constants == 2  # cosine and multiply; a broadcast costs nothing in a fusion


def test_operations_that_nothing_uses_are_told() -> None:
    assert counted("t = f32[8]{0} tanh(x)", "s = f32[8]{0} sine(x)").removed.unused == 1


def test_the_rest_was_rewritten_or_added() -> None:
    removed = counted("d = f32[8]{0} divide(x, x)", "s = f32[8]{0} sine(d)").removed
    assert (removed.rewritten, removed.added) == (1, 2)  # divide is gone; cosine and add are new
