"""update-without-donation, where something else may hold the memory that a step could take."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fusionlint.finding import Finding
from fusionlint.source.check import check_files
from fusionlint.source.judging import check_text
from fusionlint.source.scope import Scope

HEAD = """
import jax, optax
from flax.training.train_state import TrainState

def _step(state, batch):
    grads = jax.grad(lambda params: (params @ batch).sum())(state.params)
    return state.apply_gradients(grads=grads)
"""


def findings(code: str) -> list[Finding]:
    return check_text((HEAD + textwrap.dedent(code)).encode(), "m.py", Scope(("update-without-donation",)))


def advice(code: str) -> str:
    (finding,) = findings(code)
    assert finding.suggestion is not None
    return finding.suggestion.text


FIRST_STATES = {
    "by one name": "state = State(params, params, opt)",
    "by another name": "target = params\nstate = State(params=params, target=target, opt=opt)",
    "deeper": "state = State(Both(params, params), opt)",
    "replaced": "state = State(params, opt).replace(target=params, other=params)",
}


@pytest.mark.parametrize("first", FIRST_STATES.values(), ids=FIRST_STATES)
def test_what_the_first_state_holds_twice_is_named(first: str) -> None:
    body = f"params = network.init(key)\nopt = optimizer.init(params)\n{first}\nstep = jax.jit(_step)\n"
    body += "for batch in batches:\n    state = step(state, batch)\nreturn state"
    code = "def train(network, optimizer, key, batches):\n" + textwrap.indent(body, "    ")
    assert "holds `params` twice" in advice(code) or "holds `target` twice" in advice(code)


def test_a_first_state_that_another_function_makes() -> None:
    assert "holds `q` twice" in advice(
        """
        class Learner:
            def __init__(self, network, key):
                self._step = jax.jit(_step)

                def first(key):
                    q = network.init(key)
                    state = State(q_params=q, target_params=q, key=key)
                    return state

                self._state = first(key)

            def step(self, batch):
                self._state = self._step(self._state, batch)
        """
    )


@pytest.mark.parametrize(
    "first",
    [
        "State(params, jax.tree.map(jnp.copy, params))",
        "State(network.init(key), network.init(key))",
        "replicate(State(params, params))",  # every device gets copies of its own
        "init(key, key)",
        "TrainState.create(apply_fn=network.apply, params=params, tx=optimizer)",
    ],
)
def test_arrays_of_their_own_are_not_named(first: str) -> None:
    text = advice(
        f"""
        def train(network, optimizer, key, batches):
            params = network.init(key)
            state = {first}
            step = jax.jit(_step)
            for batch in batches:
                state = step(state, batch)
            return state
        """
    )
    assert "an array that the first state holds twice has to be copied" in text


def refreshed(statement: str) -> str:
    return f"""
    class Agent:
        def __init__(self, state):
            self._step = jax.jit(_step)
            self.state = state

        def update(self, batch):
            self.state = self._step(self.state, batch)
            if self.steps % 100 == 0:
                {statement}
    """


@pytest.mark.parametrize(
    "statement",
    ["self.state.target = self.state.params", "self.state = self.state.replace(target=self.state.params)"],
)
def test_a_copy_is_needed_wherever_two_parts_become_one_again(statement: str) -> None:
    assert f"; and again where `{statement}` makes it hold one twice" in advice(refreshed(statement))


@pytest.mark.parametrize(
    "statement",
    ["self.state.target = jax.tree.map(jnp.copy, self.state.params)", "self.state.target = self.other.params"],
)
def test_a_part_of_its_own_needs_no_copy_again(statement: str) -> None:
    assert "again where" not in advice(refreshed(statement))


LEARNER = """
class Learner:
    def __init__(self, state):
        self._step = jax.jit(_step)
        self._state = state

    def step(self, batch):
        self._state = self._step(self._state, batch)

    def {name}(self, names):
        {body}
"""
HANDED_OUT = {
    "as it is": "return self._state.params",
    "in a list": "return [self._state.params, 1]",
    "by a name": "params = self._state.params\n        return params",
    "one of several": "found = {'policy': self._state.params}\n        return [found[name] for name in names]",
    "if there is one": "found = {'policy': self._state.params}\n        return [found.get(name) for name in names]",
}


@pytest.mark.parametrize("body", HANDED_OUT.values(), ids=HANDED_OUT)
def test_what_is_handed_out_is_not_donated(body: str) -> None:
    assert not findings(LEARNER.format(name="get_variables", body=body))


CORE = """
class Core:
    def __init__(self):
        self._step = jax.jit(_step)

    def step(self, state, batch):
        state = self._step(state, batch)
        return state

    def {name}(self, state, names):
        {body}

class Learner:
    def step(self, batch):
        self._state = self._core.step(self._state, batch)
"""


def test_what_is_handed_out_of_an_argument_is_not_donated() -> None:
    """The state lies in another class, which asks this one for the parts that others get."""
    assert len(findings(CORE.format(name="evaluate", body="return self.network.apply(state.params, names)"))) == 1
    assert not findings(CORE.format(name="get_variables", body="return [state.params for name in names]"))


KEPT_HERE = {
    "copied": ("get_variables", "return jax.device_get(self._state.params)"),
    "computed with": ("evaluate", "return self.network.apply(self._state.params, names)"),
    "stored": ("save", "return self._state"),
    "known without it": ("steps", "return len(self._state.params)"),
}


@pytest.mark.parametrize(("name", "body"), KEPT_HERE.values(), ids=KEPT_HERE)
def test_what_stays_in_the_class_can_be_donated(name: str, body: str) -> None:
    assert len(findings(LEARNER.format(name=name, body=body))) == 1


LOOP = """
def train(state, batches, score):
    step = jax.jit(_step)
    for i, batch in enumerate(batches):
        state = step(state, batch)
        {body}
    return {result}
"""


@pytest.mark.parametrize(
    "body",
    [
        "if i % 9 == 0: best = state.params",
        "if i % 9 == 0: best = get_params(state)",
        "if i % 9 == 0: best, rest = get_params_and_rest(state)",
        "now = state.params\n        if score(now) > 1: best = now",
    ],
)
def test_a_part_that_outlives_the_step(body: str) -> None:
    assert not findings(LOOP.format(body=body, result="best"))


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("if i % 9 == 0: save(state.params)", "state"),
        ("if i % 9 == 0: print(score(state))", "state"),
        ("if i % 9 == 0: best = score(state)", "best"),
        ("last = state.params", "last"),  # of the last step
        ("now = state.params; last = now", "last"),
    ],
)
def test_a_part_that_is_read_at_once(body: str, result: str) -> None:
    assert len(findings(LOOP.format(body=body, result=result))) == 1


@pytest.mark.parametrize(("said", "count"), [("global best", 0), ("best = None", 1)])
def test_a_part_that_everybody_may_read_by_a_global_name_outlives_the_step(said: str, count: int) -> None:
    body = "now = state.params\n        if score(now) > 1: best = now"
    code = LOOP.format(body=body, result="state").replace("    step =", f"    {said}\n    step =", 1)
    assert len(findings(code)) == count


IN_EACH_TURN = """
from optimizers import adam
def train(params, batches, evaluate, loss):
    init, update, get_params = adam(0.1)
    def first_of(state): return state[0]
    def new_of(state): return state[0] + 1
    update = jax.jit(update)
    opt_state = {first}
    for batch in batches:
        params = {taken}
        opt_state = update(jax.grad(loss)(params, batch), opt_state)
        {body}
    return {result}
"""


@pytest.mark.parametrize(
    ("taken", "body", "result", "count"),
    [
        ("get_params(opt_state)", "evaluate(params)", "0", 0),
        ("get_params(opt_state)", "pass", "params", 0),
        ("get_params(opt_state)", "pass", "get_params(opt_state)", 1),
        ("get_params(opt_state)", "params = get_params(opt_state); evaluate(params)", "params", 1),
        ("first_of(opt_state)", "pass", "params", 0),
        ("new_of(opt_state)", "pass", "params", 1),
        ("opt_state[0]", "pass", "params", 0),
        ("jax.tree.map(lambda leaf: leaf, opt_state.params)", "pass", "params", 0),
        ("jax.tree.map(lambda leaf: leaf + 1, opt_state.params)", "pass", "params", 1),
        ("opt_state.params.shape", "evaluate(params)", "params", 1),
    ],
)
def test_a_part_that_is_taken_before_the_step_and_read_behind_it(
    taken: str, body: str, result: str, count: int
) -> None:
    """A function that is not compiled returns the array itself: `RuntimeError: Array has been deleted`."""
    code = IN_EACH_TURN.format(first="init(params)", taken=taken, body=body, result=result)
    assert len(findings(code)) == count


IN_EPOCHS = """
def train(state, loader, score):
    step = jax.jit(_step)
    last = score
    for epoch in range(9):
        {before}
        for batch in loader:
            print(last)
            state = step(state, batch)
        {behind}
    return {result}
"""


@pytest.mark.parametrize(
    ("before", "behind", "result", "count"),
    [
        ("pass", "if score(state) > 1: best = state.params", "best", 0),
        ("pass", "if score(state) > 1: save(state.params)", "state", 1),
        ("old = state.params", "score(old)", "state", 0),
        ("score(state.params)", "new = state.params; score(new)", "new", 1),
        ("pass", "last = state.params", "state", 0),  # of the epoch before, in the second turn of the next
        ("pass", "last = score(state.params)", "state", 1),
    ],
)
def test_a_part_that_outlives_an_epoch(before: str, behind: str, result: str, count: int) -> None:
    assert len(findings(IN_EPOCHS.format(before=before, behind=behind, result=result))) == count


def test_of_several_results_those_that_are_parts_hold_the_memory() -> None:
    """What else a function returns beside the state that it is handed is no part of it."""
    code = """
def set_rate(state, rate): return state, rate / 2
def train(state, batches, rate):
    step = jax.jit(_step)
    for batch in batches:
        state = step(state, batch)
        print(rate)
        {state}, {rate} = set_rate(state, rate)
    return state
"""
    assert len(findings(code.format(state="state", rate="rate"))) == 1
    assert len(findings(code.format(state="rate", rate="other"))) == 0


def test_a_part_of_the_first_state_is_copied_before_it_is_donated() -> None:
    first = "init(params); begin = opt_state.params"
    code = IN_EACH_TURN.format(first=first, taken="opt_state.params", body="pass", result="begin")
    (found,) = findings(code)
    assert found.suggestion is not None
    assert "`begin` is of the first and read again" in found.suggestion.text
    assert not found.suggestion.edits


@pytest.mark.parametrize(
    ("made", "is_offered"), [("init(params)", False), ("init(new())", True), ("init(p)\n    print(p)", False)]
)
def test_a_state_that_is_asked_for_the_parameters_holds_those_it_was_made_of(made: str, is_offered: bool) -> None:
    """Which nobody may read once they are donated."""
    code = IN_EACH_TURN.format(
        first="0", taken="get_params(opt_state)", body="print(p)" if "(p)" in made else "pass", result="0"
    ).replace("opt_state = 0", f"p = new()\n    opt_state = {made}")
    (found,) = findings(code)
    assert found.suggestion is not None
    assert bool(found.suggestion.edits) is is_offered


@pytest.mark.parametrize(("jit", "count"), [("jax.pmap", 0), ("jax.jit", 1)])
def test_the_first_shard_of_what_pmap_returned_is_its_own_memory(jit: str, count: int) -> None:
    code = f"""
def train(state, batches, score):
    step = {jit}(_step)
    for i, batch in enumerate(batches):
        state = step(state, batch)
        if i % 9 == 0:
            best = jax.tree.map(lambda leaf: leaf[0], state)
    return best
"""
    assert len(findings(code)) == count


def test_weights_of_particles_are_a_number_for_each() -> None:
    code = """
def sample(points, {name}, moves):
    step = jax.jit(lambda points, weights, move: (move(points), weights + 1))
    for move in moves:
        points, {name} = step(points, {name}, move)
    return points
"""
    assert [len(findings(code.format(name=name))) for name in ("weights", "log_weights")] == [1, 0]


def test_beside_a_rollout_that_is_cut_into_minibatches_the_state_is_little() -> None:
    code = """
@jax.jit
def epoch(state, env, minibatch_size):
    seen = {play}(state, env)
    return _step(state, minibatches(seen, minibatch_size))

def train(state, env, minibatch_size):
    for _ in range(1000):
        state = epoch(state, env, minibatch_size)
    return state
"""
    assert [len(findings(code.format(play=play))) for play in ("observe", "exec_rollout")] == [1, 0]


PUT_BACK = """
def train(state, batches):
    step = jax.jit(_step)
    for batch in batches:
        stats = {taken}
        state = step(state, batch)
        state = state.replace(stats={put})
    return state
"""


@pytest.mark.parametrize(
    ("taken", "put", "count"),
    [
        ("state.model.get('stats')", "stats", 0),
        ("state.model", "{'stats': stats}", 0),
        ("state.model", "batch", 1),
        ("batch", "stats", 1),
    ],
)
def test_a_part_that_is_put_into_the_next_state_is_not_donated(taken: str, put: str, count: int) -> None:
    assert len(findings(PUT_BACK.format(taken=taken, put=put))) == count


OWNED = """
class Driver:
    def __init__(self, state):
        self._step = jax.jit(_step)
        {target} = state

    def step(self, batch):
        {target} = self._step({target}, batch)
"""


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (["queue.put(jax.device_put(unreplicate(state.params), device))"], 0),
        (["params = unreplicate(state.params)", "copy = jax.device_put(params)", "queues[0].put(copy)"], 0),
        (["records['loss'].append(state.loss)"], 0),
        (["queue.put(jax.device_get(state.params))"], 1),
        (["losses.append(float(state.loss))"], 1),
        (["params = unreplicate(state.params)", "evaluate(params)"], 1),
    ],
)
def test_what_another_thread_or_a_list_may_hold_a_part_of_is_not_donated(lines: list[str], count: int) -> None:
    body = "step = jax.jit(_step)\nfor batch in batches:\n    state = step(state, batch)\n"
    body += textwrap.indent("\n".join(lines), "    ") + "\nreturn state"
    code = "def train(state, batches, queue, queues, records, losses):\n" + textwrap.indent(body, "    ")
    assert len(findings(code)) == count


@pytest.mark.parametrize(("target", "count"), [("self.train_state", 1), ("self.variational.train_state", 0)])
def test_what_another_object_holds_is_not_donated(target: str, count: int) -> None:
    assert len(findings(OWNED.format(target=target))) == count


AGENT = """
    class Agent:
        def __init__(self):
            self._step = jax.jit(_step)

        def update(self, state: TrainState, batch):
            state = self._step(state, batch)
            return state

    def run(agent, state, batches):
        MADE
"""


@pytest.mark.parametrize(
    ("line", "more", "count"),
    [
        ("state = state.replace(n=jax.lax.pmean(state.n, 'i'))", "", 0),
        ("state = state.replace(n=jax.numpy.mean(state.n))", "", 1),
        ("state = state.replace(n=jax.lax.pmean(state.n, 'i'))", "both = jax.vmap(score, axis_name='i')", 1),
    ],
)
def test_a_step_along_an_axis_that_a_caller_names_is_part_of_its_program(line: str, more: str, count: int) -> None:
    code = f"""
    @jax.jit
    def step(state, batch):
        grads = jax.grad(lambda params: (params @ batch).sum())(state.params)
        {line}
        return state.apply_gradients(grads=grads)

    def train(state, batches):
        for batch in batches:
            state = step(state, batch)
        {more}
        return state
    """
    assert len(findings(code)) == count


RUNNERS = {
    "called step by step": ("for batch in batches:\n            state = agent.update(state, batch)", 1),
    "handed to a transform": ("many = jax.jit(jax.vmap(agent.update, (0, 0)))", 0),
    "another method is": ("many = jax.jit(jax.vmap(agent.update_all))", 1),
    "of something that is known": ("many = jax.jit(optax.adam.update)", 1),
}


@pytest.mark.parametrize(("runner", "count"), RUNNERS.values(), ids=RUNNERS)
def test_what_a_transform_is_handed_is_traced_and_donates_nothing(runner: str, count: int) -> None:
    assert len(findings(AGENT.replace("MADE", runner))) == count


@pytest.mark.parametrize(
    ("step", "made", "times"),
    [
        ("return state.apply_gradients(grads=grads)", "return jax.jit(train)", 1),
        ("return state.apply_gradients(grads=grads), 0", "return jax.jit(train, donate_argnums=1)", 1),
        ("return state.apply_gradients(grads=grads), 0", "return jax.jit(train, donate_argnums=(0, 1))", 0),
        ("return state.apply_gradients(grads=grads)", "return jax.jit(train, donate_argnames='state')", 0),
        ("return state.apply_gradients(grads=grads)", "return jax.jit(train, **options)", 0),
        ("new = state.apply_gradients(grads=grads)\n        return new.replace(step=0)", "return jax.jit(train)", 1),
        (
            "if batch: new = state.apply_gradients(grads=grads)\n"
            "        else: new = state.apply_gradients(grads=grads).replace(step=0)\n"
            "        new = new.average()\n        return new, 0",
            "return jax.jit(train)",
            1,
        ),
        ("return TrainState.create(state.apply_gradients(grads=grads))", "return jax.jit(train)", 0),
        ("return batch, state.apply_gradients(grads=grads)", "return jax.jit(train)", 0),
        ("return state, state.apply_gradients(grads=grads)", "return jax.jit(train)", 0),
        ("if batch: return state\n        return state.apply_gradients(grads=grads)", "return jax.jit(train)", 0),
        ("return state.apply_gradients(grads=grads)", "step = jax.jit(train)\n    return step", 1),
        ("return state.apply_gradients(grads=grads)", "step = jax.jit(train)\n    keep(step)\n    return step", 0),
        ("return state.replace(loss=batch)", "return jax.jit(train)", 0),
    ],
)
def test_a_step_made_for_others_is_told_to_donate_the_state_that_it_returns_anew(
    step: str, made: str, times: int
) -> None:
    code = f"""
def make(options, keep):
    def train(state, batch):
        grads = jax.grad(lambda params: (params @ batch).sum())(state.params)
        {step}
    {made}
"""
    assert len(findings(code)) == times


LOOPS = {
    "unpacked at once": ("(state, _), losses = jax.lax.scan(one, (state, 0), batch)", "state, losses", 1),
    "by itself": ("state, losses = jax.lax.scan(one, state, batch)", "state, losses", 1),
    "by a name": ("first = (state, 0)\n        (new, n), losses = jax.lax.scan(one, init=first)", "new, n", 1),
    "what is made before": ("state = jax.lax.fori_loop(0, 9, lambda i, state: state, _step(state, batch))", "state", 0),
    "carried twice": (
        "state = jax.lax.fori_loop(0, 9, later, state)\n        state, n = jax.lax.scan(one, state, batch)",
        "state",
        1,
    ),
    "another place": ("(n, state), losses = jax.lax.scan(one, (state, 0), batch)", "state, losses", 0),
    "what is collected": ("_, state = jax.lax.scan(one, state, batch)", "state", 0),
    "something else": ("(state, _), losses = loop(one, (state, 0), batch)", "state, losses", 0),
    "what is copied": ("state, losses = jax.lax.scan(one, copy(state), batch)", "state, losses", 0),
}


@pytest.mark.parametrize(("lines", "returned", "times"), LOOPS.values(), ids=LOOPS)
def test_what_a_loop_carries_is_handed_back_anew(lines: str, returned: str, times: int) -> None:
    code = f"""
def make(loop, copy, later):
    def one(state, batch):
        return _step(state, batch), 0
    def train(state, batch):
        {lines}
        return {returned}
    return jax.pmap(train)
"""
    assert len(findings(code)) == times


@pytest.mark.parametrize(("name", "times"), [("repertoire", 1), ("state", 0), ("things", 0)])
def test_what_is_large_by_its_name_need_not_be_trained(name: str, times: int) -> None:
    code = f"""
def make(one):
    def update({name}, key):
        {name}, scores = jax.lax.scan(one, {name}, key)
        return {name}, scores
    return jax.pmap(update)
"""
    assert len(findings(code)) == times


OF_CONSTANTS = {
    "by number": ("functools.partial(jax.jit, static_argnums=(0,))", "state", "donate_argnums=1"),
    "by name": ("functools.partial(jax.jit, static_argnames='self')", "state", "donate_argnums=1"),
    "of a pmap": ("functools.partial(jax.pmap, static_broadcasted_argnums=0)", "state", "donate_argnums=1"),
    "one of several": ("functools.partial(jax.jit, static_argnums=0)", "state_of_the_network", "donate_argnums=1"),
    "the object is data": ("jax.jit", "state", None),
    "something small": ("functools.partial(jax.jit, static_argnums=(0,))", "sample", None),
}


@pytest.mark.parametrize(("above", "name", "donated"), OF_CONSTANTS.values(), ids=OF_CONSTANTS)
def test_a_method_of_a_constant_is_told_to_donate_the_state_that_it_is_handed(
    above: str, name: str, donated: str | None
) -> None:
    code = f"""
import functools

class Model:
    @{above}
    def step(self, {name}, batch):
        return {name}.apply_gradients(grads=batch)
"""
    if donated is None:
        assert not findings(code)
    else:
        assert advice(code).startswith(f"{donated}, where callers")


METHODS = {
    "returned anew": ("@jax.jit", "return agent.replace(state=state), 0", 1),
    "with a setting": ("@functools.partial(jax.jit, static_argnames='n')", "return agent.replace(state=state)", 1),
    "by another name": ("@jax.jit", "new = agent.replace(state=state); return new", 1),
    "donated": ("@functools.partial(jax.jit, donate_argnums=0)", "return agent.replace(state=state)", 0),
    "as it is": ("@jax.jit", "return agent", 0),
    "of a class": ("@jax.jit", "return Agent(state)", 0),
    "made by a method": ("@jax.jit", "new = agent.next(state); return new.replace(state=state)", 0),
    "one by one": ("@jax.jit", "new = agent.replace(state=state); return new.replace(n=1).replace(m=2), 0", 1),
    "last": ("@jax.jit", "return 0, agent.replace(state=state)", 0),
    "called by the class": (
        "@jax.jit",
        "return agent.replace(state=state)\n    def go(self, b): return self.update(b)",
        0,
    ),
    "jitted in the class": ("", "return agent.replace(state=state)\n    update = jax.jit(update)", 1),
    "as something else": ("", "return agent.replace(state=state)\n    update = jax.jit(_step)", 0),
}


def a_method(above: str, returned: str) -> str:
    return f"""
import functools

class Agent:
    {above}
    def update(agent, batch):
        grads = jax.grad(lambda params: (params @ batch).sum())(agent.state.params)
        state = agent.state.apply_gradients(grads=grads)
        {returned}
"""


@pytest.mark.parametrize(("above", "returned", "times"), METHODS.values(), ids=METHODS)
def test_a_method_is_told_to_donate_the_object_that_it_returns_anew(above: str, returned: str, times: int) -> None:
    assert len(findings(a_method(above, returned))) == times


CALLS = {
    "the new object": ("one, info = one.update(batch)", 1),
    "others of its results": ("one, info = one.update(batch)\n    _, info = one.update(batch)", 0),
    "an element that is not the first": ("one, info = one.update(batch)\n    info = one.update(batch)[1]", 0),
    "the first element": ("one = one.update(batch)[0]", 1),
    "nothing": ("one, info = one.update(batch)\n    one.update(batch)", 0),
    "nothing of a dictionary's": ("one, info = one.update(batch)\n    info.update(batch)", 1),
}


@pytest.mark.parametrize(("lines", "times"), CALLS.values(), ids=CALLS)
def test_a_method_whose_new_object_a_call_drops_is_not_told_to_donate_the_old(lines: str, times: int) -> None:
    code = a_method("@jax.jit", "return agent.replace(state=state), {}")
    assert len(findings(f"{code}\ndef train(one, batch):\n    {lines}\n")) == times


def test_a_method_that_a_transform_is_handed_donates_nothing() -> None:
    code = a_method("@jax.jit", "return agent.replace(state=state)")
    assert not findings(f"{code}\ndef run(one, batches):\n    return jax.vmap(one.update)(batches)\n")


@pytest.mark.parametrize(
    ("returned", "times"), [("return step", 1), ("return step, 0", 0), ("keep(step); return step", 0), ("return 0", 0)]
)
def test_a_decorated_step_that_is_returned(returned: str, times: int) -> None:
    code = f"""
def make(keep):
    @jax.jit
    def step(state, batch):
        grads = jax.grad(lambda params: (params @ batch).sum())(state.params)
        return state.apply_gradients(grads=grads), 0
    {returned}
"""
    assert len(findings(code)) == times


STORED = {
    "in the class": ("self.params = new", 1),
    "after a line that does not read it": ("n = 1; self.n = n\n        self.params = new", 1),
    "read in between": ("print(self.params)\n        self.params = new", 0),
    "all of it is read": ("save(self)\n        self.params = new", 0),
    "now and then": ("if batch: self.params = new", 0),
    "as something else": ("self.last = new", 0),
    "and handed out": ("self.params = new\n        return self.params", 0),
    "and a part of it handed out": ("self.params = new\n        return self.params.loss", 1),
    "which is a property": ("self.params = new\n\n    @property\n    def params(self): return self.all[0]", 0),
    "and held as another field": ("self.params = new\n\n    def start(self): self.params = self.average", 0),
}


@pytest.mark.parametrize(("lines", "times"), STORED.values(), ids=STORED)
def test_what_a_later_line_stores_under_the_old_name_replaces_it(lines: str, times: int) -> None:
    code = f"""
class Learner:
    def __init__(self, params):
        self._update = jax.jit(_step)
        self.params = params

    def update(self, batch):
        new, _ = self._update(self.params, batch)
        {lines}
"""
    assert len(findings(code)) == times


TAKEN_OUT = {
    "at once": ("state = out.state", 1),
    "after a line that does not read it": ("print(out.loss)\n        state = out.state", 1),
    "after a line that reads the new one": ("save(out.state.params, state=0)\n        state = out.state", 1),
    "a part is read in between": ("evaluate(state.params)\n        state = out.state", 0),
    "in a block of its own": ("if batch: state = out.state", 0),
}


@pytest.mark.parametrize(("lines", "times"), TAKEN_OUT.values(), ids=TAKEN_OUT)
def test_what_a_later_line_takes_out_of_the_result_replaces_the_old(lines: str, times: int) -> None:
    code = f"""
def train(state, batches):
    step = jax.jit(_step)
    for batch in batches:
        out = step(state, batch)
        {lines}
"""
    assert len(findings(code)) == times


EPOCHS = """
def fit(state, epochs, best=None):
    for epoch in range(epochs):
        KEPT
        state = run_epoch(state, epoch)
    return state, best

def run_epoch(state, epoch):
    for i in range(1000):
        state = step(state)
    return state

@jax.jit
def step(state):
    grads = jax.grad(lambda params: jnp.sum(params["w"] ** 2))(state.params)
    return state.apply_gradients(grads=grads)
"""


@pytest.mark.parametrize(
    ("kept", "times"), [("best = state", 0), ("history.append(state)", 0), ("best = jnp.sum(state.params['w'])", 1)]
)
def test_what_a_caller_of_the_loop_keeps_is_not_donated(kept: str, times: int) -> None:
    """To donate it would delete the best state that `fit` returns."""
    code = f"import jax\nimport jax.numpy as jnp\n{EPOCHS.replace('KEPT', kept)}"
    scope = Scope(("update-without-donation",))
    assert len(check_text(code.encode(), "m.py", scope)) == times


OF_A_CALLER = """
step = jax.jit(_step)

def fit(state, batches):
    for batch in batches:
        state = step(state, batch)
    return state
"""


def test_what_a_caller_gave_is_copied_before_it_is_donated() -> None:
    assert "may go on with the first `state`: copy it before, jax.tree.map(jnp.copy, state)" in advice(OF_A_CALLER)
    called = OF_A_CALLER + "\ndef main(batches):\n    return fit(TrainState.create(), batches)\n"
    assert "may go on with" not in advice(called)


SIZES = {
    "a layer of a circuit": ("jax.random.normal(key, (LAYERS, 2 * N, 3))", 0),
    "a shape with a name": ("jax.random.uniform(key, shape=shape) * 0.1", 0),
    "numpy's": ("jnp.asarray(np.random.normal(scale=0.1, size=[LAYERS, N]))", 0),
    "of several arrays": ('{"w": jnp.zeros((N, N)), "b": jnp.array(0.0)}', 0),
    "made by whatever": ("backend.randn(stddev=0.1, shape=[LAYERS, N])", 0),
    "large": ("jax.random.normal(key, (N**3, 2**10))", 1),
    "with one large part": ('{"w": jnp.zeros((N**3, N**3)), "b": jnp.zeros(N)}', 1),
    "a vector of so many": ("jnp.zeros(n - 1)", 0),
    "a shape that nobody sees": ("jnp.zeros(n)", 1),
    "of a setting": ("jax.random.normal(key, (LAYERS, n))", 1),
    "of layers so wide": ("init_network(key, layer_sizes=[36, N])", 0),
    "of wide layers": ("init_network(key, layer_sizes=[784, 1024, N])", 1),
    "of layers as wide as somebody says": ("init_network(key, layer_sizes=[36, n])", 1),
    "handed such a shape": ("init_network(key, shape=(32, 28))", 0),
    "of a batch of such a size": ("init_network(key, [32, 28])", 1),
    "of a network": ("network.init(key, jnp.ones((1, N)))", 1),
}


@pytest.mark.parametrize("is_handed", [False, True], ids=["there", "handed"])
@pytest.mark.parametrize(("first", "times"), SIZES.values(), ids=SIZES)
def test_of_parameters_that_are_seen_to_be_few_nothing_is_donated(first: str, times: int, is_handed: bool) -> None:
    loop = """for batch in batches:
            params, opt_state = step(params, opt_state, batch)
        return params"""
    code = f"""
import jax.numpy as jnp, numpy as np
LAYERS = 3
N = 10
optimizer = optax.adam(0.1)

@jax.jit
def step(params, opt_state, batch):
    grads = jax.grad(lambda p: (p * batch).sum())(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state

def fit(params, opt_state, batches):
    {loop.replace("        ", "    ") if is_handed else "pass"}

def main(key, n, batches, network):
    shape = (LAYERS, 2 * N)
    params = {first}
    opt_state = optimizer.init(params)
    {"fit(params, opt_state, batches)" if is_handed else loop.replace("        ", "    ")}
"""
    assert len(findings(code)) == times


@pytest.mark.parametrize(
    ("method", "times"),
    [
        ("def get_variables(self, names): return first([self.state.params])", 0),
        ("def get_weights(self): return unreplicate(self.state.params)", 0),
        ("def get_weights(self): return jax.device_get(self.state.params)", 1),
        ("def save(self): return first(self.state)", 1),
        ("def predict(self, x): return apply(self.state.params, x)", 1),
    ],
)
def test_what_a_getter_hands_through_a_function_is_not_donated(method: str, times: int) -> None:
    code = f"""
class Learner:
    def __init__(self, params):
        self._update = jax.jit(_step)
        self.state = TrainState.create(params=params)

    def step(self, batch):
        self.state = self._update(self.state, batch)

    {method}
"""
    assert len(findings(code)) == times


@pytest.mark.parametrize(
    ("target", "places"),
    [
        ("", "donate_argnums=2"),
        ("self.target_params = copy(params)", "donate_argnums=(0, 2)"),
        ("self.target_params = self.params", "donate_argnums=2"),
    ],
)
def test_parameters_that_a_base_class_may_keep_as_a_target_are_not_donated(target: str, places: str) -> None:
    code = f"""
def _train(params, target_params, opt_state, batch):
    grads = jax.grad(lambda p: (p @ target_params @ batch).sum())(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state

class Agent(Base):
    def __init__(self, params):
        self._train = jax.jit(_train)
        self.params = params
        {target}

    def step(self, batch):
        self.params, self.opt_state = self._train(self.params, self.target_params, self.opt_state, batch)
"""
    assert advice(code).startswith(places)


OPTIMIZERS = {
    "of jax's examples": ("optimizers.momentum(0.1, 0.9)", "jnp.zeros(2)", 0),
    "of many numbers": ("optimizers.momentum(0.1, 0.9)", "jnp.zeros(2**20)", 1),
    "of somebody": ("made(0.1)", "jnp.zeros(2)", 1),
}


@pytest.mark.parametrize(("made", "first", "times"), OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_functions_of_an_optimizer_make_a_state_as_small(made: str, first: str, times: int) -> None:
    code = f"""
import jax.numpy as jnp
from jax.example_libraries import optimizers

def train(batches):
    opt_init, opt_update, get_params = {made}
    first = ({first}, {first})
    opt_state = opt_init(first)

    @jax.jit
    def step(i, opt_state, batch):
        grads = jax.grad(lambda p: (p[0] * batch + p[1]).sum())(get_params(opt_state))
        return opt_update(i, grads, opt_state)

    for i, batch in enumerate(batches):
        opt_state = step(i, opt_state, batch)
    return get_params(opt_state)
"""
    assert len(findings(code)) == times


NETWORKS = {
    "narrow, of stax": ("stax.serial(stax.Conv(16, (8, 8)), stax.Relu, stax.Dense(10))[1](params, x)", 0),
    "wide, of stax": ("stax.serial(stax.Dense(1024), stax.Relu, stax.Dense(10))[1](params, x)", 1),
    "narrow": ("hk.Sequential([hk.Linear(10), jax.nn.relu, hk.nets.MLP([30, 2])])(x)", 0),
    "one is wide": ("hk.Sequential([hk.Linear(10), jax.nn.relu, hk.nets.MLP([300, 2])])(x)", 1),
    "of a setting": ("hk.Linear(2)(hk.Linear(width)(x))", 1),
    "by a constant": ("hk.Linear(CLASSES)(hk.LayerNorm(-1)(x))", 0),
    "of somebody": ("resnet(x)", 1),
    "a circuit": ("tc.Circuit(10, inputs=x).expectation_ps(z=[0])", 0),
    "a circuit behind a layer": ("tc.Circuit(10, inputs=hk.Linear(1024)(x)).expectation_ps(z=[0])", 1),
    "what is no circuit": ("tc.backend.sum(x)", 1),
}


@pytest.mark.parametrize(("network", "times"), NETWORKS.values(), ids=NETWORKS)
def test_of_a_network_that_is_seen_to_be_narrow_nothing_is_donated(network: str, times: int) -> None:
    code = f"""
import haiku as hk
import tensorcircuit as tc
from jax.example_libraries import stax
CLASSES = 3

def forward(x):
    return {network}

def train(key, x, batches, width):
    network = hk.transform(forward)
    params = network.init(key, x)
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params, opt_state, batch):
        grads = jax.grad(lambda p: network.apply(p, batch).sum())(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state

    for batch in batches:
        params, opt_state = step(params, opt_state, batch)
"""
    assert len(findings(code)) == times


@pytest.mark.parametrize(
    ("given", "donated"),
    [
        ("params, opt_state, batch", "donate_argnums=(0, 1)"),
        ("params, batch=batch, opt_state=opt_state", 'donate_argnums=0, donate_argnames="opt_state"'),
        ("batch=batch, opt_state=opt_state, params=params", 'donate_argnames=("opt_state", "params")'),
    ],
)
def test_what_is_given_by_keyword_is_donated_by_name(given: str, donated: str) -> None:
    code = f"""
@jax.jit
def step(params, opt_state, batch):
    grads = jax.grad(lambda p: (p @ batch).sum())(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state

def train(network, key, batches):
    params = network.init(key)
    opt_state = optimizer.init(params)
    for batch in batches:
        params, opt_state = step({given})
"""
    if "opt_state=opt_state, params" in given:
        code = code.replace("params, opt_state = step", "opt_state, params = step")
    assert advice(code).startswith(f"{donated}: ")


@pytest.mark.parametrize(
    ("first", "times"),
    [("model.params.copy()", 0), ("jax.tree.map(jnp.copy, model.params)", 1), ("jnp.asarray(model.params).copy()", 1)],
)
def test_a_copy_of_a_dict_holds_the_same_arrays(first: str, times: int) -> None:
    code = f"""
import jax.numpy as jnp

@jax.jit
def step(params, batch):
    return params - jax.grad(lambda p: (p @ batch).sum())(params)

def train(model, batches):
    params = {first}
    for batch in batches:
        params = step(params, batch)
        evaluate(model.params)
"""
    assert len(findings(code)) == times


@pytest.mark.parametrize(
    ("made", "times"),
    [
        ("self._update = jax.pmap(self._update)", 1),
        ("self._update = wrapped(self._update)\n        self._step = jax.pmap(self._update)", 0),
        ("self._update = jax.pmap(self._update)\n        self.others = [self._update]", 0),
    ],
)
def test_a_method_that_its_own_object_compiles(made: str, times: int) -> None:
    code = f"""
class Experiment:
    def __init__(self, wrapped):
        {made}
        self._params = first()

    def step(self, batch):
        self._params, self._opt_state = self._update(self._params, self._opt_state, batch)

    def _update(self, params, opt_state, batch):
        grads = jax.grad(lambda p: (p @ batch).sum())(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state
"""
    assert len(findings(code)) == times


WITHOUT_AN_OBJECT = {
    "static": ("@staticmethod\n    @jax.jit\n    def step(state, batch)", "donate_argnums=0"),
    "of the class": (
        "@classmethod\n    @functools.partial(jax.jit, static_argnums=0)\n    def step(cls, state, batch)",
        "donate_argnums=1",
    ),
    "donated": (
        "@staticmethod\n    @functools.partial(jax.jit, donate_argnums=0)\n    def step(state, batch)",
        None,
    ),
    "called by its class too": (
        "def warm(self): return Agent.step(self.state)\n\n    @staticmethod\n    @jax.jit\n    def step(state, batch)",
        None,
    ),
    "under something else": ("@checked\n    @jax.jit\n    def step(self, state, batch)", None),
}


@pytest.mark.parametrize(("above", "donated"), WITHOUT_AN_OBJECT.values(), ids=WITHOUT_AN_OBJECT)
def test_a_compiled_method_that_is_handed_no_object(above: str, donated: str | None) -> None:
    code = f"""
import functools

class Agent:
    def __init__(self, state):
        self.state = state

    def update(self, batch):
        self.state = self.step(self.state, batch)

    {above}:
        return _step(state, batch)
"""
    assert advice(code).startswith(f"{donated}: ") if donated else not findings(code)


FIRST_NUMBERS = {
    "a dictionary of numbers": ("{'ck': one} | ({'ceps': one} if n else {})", "", 0),
    "as many as a few": ("jnp.zeros_like(jnp.asarray([0.1, 0.2, 0.3]))", "", 0),
    "read as a number": ("jnp.where(n == 0, 1.0, n)", "print(float(params))", 0),
    "a part of it read as a number": ("jnp.where(n == 0, 1.0, n)", "print(float(params[0]))", 1),
    "like what is not seen": ("jnp.zeros_like(n)", "", 1),
    "one of two not seen": ("{'ck': one} | ({'ceps': n} if n else {})", "", 1),
}


@pytest.mark.parametrize(("first", "read", "times"), FIRST_NUMBERS.values(), ids=FIRST_NUMBERS)
def test_what_an_optimizer_makes_of_a_few_numbers_is_not_worth_a_donation(first: str, read: str, times: int) -> None:
    code = f"""
import jax.numpy as jnp

def train(optimizer, batches, n):
    one = jnp.asarray(1.0, jnp.float64)
    params = {first}
    opt_state = optimizer.init(params)
    @jax.jit
    def step(params, opt_state, batch):
        grads = jax.grad(lambda p: (p * batch).sum())(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state
    for batch in batches:
        params, opt_state = step(params, opt_state, batch)
        {read}
    return params
"""
    assert len(findings(code)) == times


NORMS = """
import jax.numpy as jnp

def scaled(params, optimizer, batches):
    norms = jax.tree.map(lambda leaf: {leaf}, params)
    return tuned(norms, optimizer, batches)

def tuned(norms, optimizer, batches):
    meta_params = replicate(norms)
    opt_state = optimizer.init(meta_params)
    opt_state = replicate(opt_state)

    @jax.jit
    def update(meta_params, opt_state, batch):
        grads = jax.grad(loss)(meta_params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, meta_params)
        return optax.apply_updates(meta_params, updates), opt_state

    for batch in batches:
        meta_params, opt_state = update(meta_params, opt_state, batch)
    return meta_params
"""


@pytest.mark.parametrize(("leaf", "count"), [("jnp.linalg.norm(leaf.reshape(-1))", 0), ("jnp.tanh(leaf)", 1)])
def test_a_tree_of_norms_is_nothing_to_donate(leaf: str, count: int) -> None:
    assert len(findings(NORMS.format(leaf=leaf))) == count
    assert len(findings(NORMS.format(leaf="jnp.sum(leaf, 0)"))) == 1


@pytest.mark.parametrize(("name", "count"), [("em_step", 0), ("step", 1)])
def test_an_iteration_of_em_is_large_beside_its_parameters(name: str, count: int) -> None:
    code = f"""
        def fit(model, params, emissions, iterations):
            @jax.jit
            def {name}(params, state):
                return model.m_step(params, model.e_step(params, emissions), state)

            state = model.init_state(params)
            for _ in range(iterations):
                params, state = {name}(params, state)
            return params
        """
    assert len(findings(code)) == count


OF_EQUINOX = """
    import equinox as eqx

    @eqx.filter_jit{told}
    def make_step({model}, opt_state, batch, key):
        grads = eqx.filter_grad(loss_fn)({model}, batch, key)
        updates, opt_state = optimizer.update(grads, opt_state)
        return eqx.apply_updates({model}, updates), opt_state

    def train({model}, opt_state, loader, key):
        for batch in loader:
            {model}, opt_state = make_step({model}, opt_state, batch, key)
        return {model}
    """


def test_equinox_donates_all_but_its_first_argument() -> None:
    said = advice(OF_EQUINOX.format(told="", model="model"))
    assert said.startswith('donate="all-except-first" for equinox.filter_jit, and as the first argument what is not ')
    assert "replaced, (batch, key): the results take the memory" in said
    assert not findings(OF_EQUINOX.format(told='(donate="all")', model="model"))


def test_data_that_others_may_hold_goes_beside_the_batch() -> None:
    assert "(x, batch, key)" in advice(OF_EQUINOX.format(told="", model="x"))


def test_an_average_alone_begins_as_the_model_itself() -> None:
    code = """
        import equinox as eqx

        @eqx.filter_jit
        def _average(model, ema_params, decay):
            return jax.tree.map(lambda new, old: decay * old + (1 - decay) * new, model, ema_params)

        def train(model, ema_params, loader):
            for batch in loader:
                ema_params = _average(model, ema_params, 0.99)
            return ema_params
        """
    assert not findings(code)
    assert findings(code.replace("ema_params", "params"))


BESIDE_A_TARGET = """
def _learn(key, opt_state, params, target_params, batch):
    grads = jax.grad(lambda p: (p @ target_params @ batch).sum())(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return key, opt_state, optax.apply_updates(params, updates)

class Agent:
    def __init__(self, params):
        self._learn = jax.jit(_learn)
        self._params = params
        self._target_params = network.init(key)
        self._opt_state = optimizer.init(params)

    def step(self, batch):
        self._key, self._opt_state, self._params = self._learn(
            self._key, self._opt_state, self._params, self._target_params, batch
        )

    {methods}
"""
OTHER_METHODS = {
    "none": ("", "donate_argnums=(1, 2)"),
    "a target": ("def copy(self): self._target_params = self._params", "donate_argnums=1:"),
    "an actor": ("def get_variables(self): return [self._params]", "donate_argnums=1:"),
    "a file": (
        "def get_state(self): return {'opt': self._opt_state}\n    def set_state(self, s): pass",
        "donate_argnums=(1",
    ),
    "both": ("def get_variables(self): return [self._params, self._opt_state]", None),
    "no way back": ("def get_state(self): return {'opt': self._opt_state, 'params': self._params}", None),
    "all of it": ("def get_state(self): return self._opt_state\n    def set_state(self, s): pass", None),
}


@pytest.mark.parametrize(("methods", "donated"), OTHER_METHODS.values(), ids=OTHER_METHODS)
def test_the_state_of_an_optimizer_can_be_donated_beside_parameters_that_are_kept(
    methods: str, donated: str | None
) -> None:
    code = BESIDE_A_TARGET.format(methods=methods)
    if donated is None:
        assert not findings(code)
    else:
        assert advice(code).startswith(donated)


def test_an_optimizer_whose_state_holds_the_parameters_is_named() -> None:
    code = BESIDE_A_TARGET.format(methods="def copy(self): self._target_params = self._params")
    assert "the first state of optax.contrib.dog holds" in advice("optimizer = optax.contrib.dog()\n" + code)
    assert not findings(code.replace("optax.apply_updates(params, updates)", "optimizer.get_params(opt_state)"))


DONATING = """
def _train(params, opt_state, batch):
    grads = jax.grad(lambda p: (p @ batch).sum())(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state

def train(params, opt_state, {batch}s):
    step = jax.jit(_train, {told})
    for {batch} in {batch}s:
        params, opt_state = step(params, opt_state, {batch})
    return params
"""
TOLD = {
    "the batch": ("donate_argnums=2", "batch", "donate_argnums=(0, 1), and not `batch`, which no result replaces:"),
    "one of two": ("donate_argnums=(0,)", "batch", "donate_argnums=(0, 1):"),
    "gradients": ("donate_argnums=2", "grads", None),
    "all": ("donate_argnums=(0, 1)", "batch", None),
    "by name": ("donate_argnames='batch'", "batch", None),
    "from elsewhere": ("donate_argnums=DONATED", "batch", None),
    "options": ("**options", "batch", None),
}


@pytest.mark.parametrize(("told", "batch", "donated"), TOLD.values(), ids=TOLD)
def test_what_goes_round_is_donated_in_place_of_the_batch(told: str, batch: str, donated: str | None) -> None:
    code = DONATING.format(told=told, batch=batch)
    if donated is None:
        assert not findings(code)
    else:
        assert advice(code).startswith(donated)


def test_a_decorated_method_donates_by_numbers_of_its_own() -> None:
    code = """
        import functools

        class Trainer:
            @functools.partial(jax.jit, static_argnums=0, donate_argnums=({donated},))
            def _step(self, params, batch):
                return params - 0.1 * jax.grad(lambda p: (p @ batch).sum())(params)

            def train(self, params, batches):
                for batch in batches:
                    params = self._step(params, batch)
                return params
        """
    assert advice(code.format(donated=2)).startswith("donate_argnums=1, and not `batch`")
    assert not findings(code.format(donated=1))


@pytest.mark.parametrize(
    ("around", "inner", "is_repeated"),
    [
        ("range(1000)", "range(4)", True),
        ("range(10)", "range(4)", True),
        ("batches", "range(2)", True),
        ("range(2)", "range(4)", False),
        ("[0]", "range(4)", False),
    ],
)
def test_a_few_steps_in_each_of_many_turns_are_many(around: str, inner: str, is_repeated: bool) -> None:
    """As of the epochs of PPO."""
    code = f"""
        step = jax.jit(_step)

        def train(params, batches, optimizer):
            state = TrainState.create(apply_fn=None, params=params, tx=optimizer)
            for turn in {around}:
                for epoch in {inner}:
                    state = step(state, batches[turn])
            return state
        """
    assert bool(findings(code)) is is_repeated


@pytest.mark.parametrize(
    ("used", "count"),
    [
        ("def step(state, x):\n        return update(state, x), None\n\n    return jax.lax.scan(step, state, xs)", 0),
        ("for x in xs:\n        state = update(state, x)\n    return state", 1),
    ],
)
def test_a_step_that_is_inlined_in_a_loop_of_jax_alone_donates_nothing(used: str, count: int) -> None:
    code = f"""
update = jax.jit(_step)

def step_once(state, x):
    state = update(state, x)
    return state

def train(state, xs):
    {used}
"""
    assert len(findings(code)) == count


@pytest.mark.parametrize(("kept", "count"), [("first", 0), ("params", 1)])
@pytest.mark.parametrize("between", ["", "\nclass Trained(Model):"])
def test_what_another_field_was_given_too_is_not_donated(kept: str, count: int, between: str) -> None:
    code = f"""
class Model:
    def __init__(self, network, key):
        self.best = None
        self.params = None
        params = network.init(key)
        self.params = params
        self.{kept} = params
{between}
    def build(self):
        self.step = jax.jit(lambda params, batch: jax.tree.map(lambda p: p - 0.1 * (p @ batch), params))

    def fit(self, batches):
        for batch in batches:
            self.params = self.step(self.params, batch)
"""
    assert len(findings(code)) == count


PARTIAL = """
from functools import partial
import jax
from optimizer import optimizer

@partial(jax.jit, static_argnames=["loss"])
def _update(params, opt_state, batch, loss):
    grads = jax.grad(loss)(params, batch)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return jax.tree.map(jax.numpy.add, params, updates), opt_state

def train(params, opt_state, loader, loss):
    update = partial(_update, {bound})
    for batch in loader:
        params, opt_state = update(params=params, opt_state=opt_state, batch=batch)
    return params
"""


def test_a_step_is_called_through_a_partial_that_binds_arguments_by_name() -> None:
    assert [finding.message for finding in findings(PARTIAL.format(bound="loss=loss"))] == [
        "each call makes a new `params` and `opt_state` beside the old, which nobody reads again"
    ]
    assert not findings(PARTIAL.format(bound="params"))


FILLED = """
import jax, optax

class Particles:
    def __init__(self, batched, optimizer):
        self.batched, self.optimizer, self.params = batched, optimizer, {}
        FILL
        self.opt_state = optimizer.init(self.params)

class Fitted(Particles):
    @functools.partial(jax.jit, static_argnums=0)
    def _step(self, opt_state, params, batch):
        grads = jax.grad(lambda params: (params["net"] @ batch).sum())(params)
        updates, opt_state = self.optimizer.update(grads, opt_state, params)
        return opt_state, optax.apply_updates(params, updates)

    def fit(self, batches):
        for batch in batches:
            self.opt_state, self.params = self._step(self.opt_state, self.params, batch)
"""
OF_A_FIELD = ('self.params.update({"net": self.batched.weights})', 'self.params["net"] = self.batched.weights')
OF_A_CALL = ('self.params.update({"net": batched.init()})', 'self.params["net"] = batched.init()', "pass")


@pytest.mark.parametrize(
    ("fill", "what"),
    [
        *((fill, "`self.opt_state`") for fill in OF_A_FIELD),
        *((f, "`self.opt_state` and `self.params`") for f in OF_A_CALL),
    ],
)
def test_what_another_object_gave_and_holds_is_not_donated(fill: str, what: str) -> None:
    (finding,) = findings("import functools\n" + FILLED.replace("FILL", fill))
    assert finding.message.startswith(f"each call makes a new {what} beside")


@pytest.mark.parametrize(("fill", "count"), [(OF_A_CALL[0], 1), ("pass", 2)])
def test_what_a_class_of_another_file_puts_into_a_state_is_unknown(fill: str, count: int, tmp_path: Path) -> None:
    base, rest = FILLED.replace("FILL", fill).split("class Fitted")
    (tmp_path / "base.py").write_text(base)
    code = "import functools, jax, optax\nfrom base import Particles\n\nclass Fitted" + rest
    (tmp_path / "fitted.py").write_text(code)
    (finding,) = check_files(sorted(tmp_path.glob("*.py")), Scope(("update-without-donation",))).findings
    assert finding.message.count("`self.") == count


GATHERED = {
    "handed to a call": ("saved = {'state': self.state}", "saver.save(path, saved)", 1),
    "handed to two": ("saved = {'state': self.state}", "saver.check(saved)\n        saver.save(path, item=saved)", 1),
    "a list of them": ("saved = [self.state, self.steps]", "saver.save(path, saved)", 1),
    "deeper": ("saved = {'learner': {'state': self.state}}", "saver.save(path, saved)", 1),
    "kept as a dict": ("saved = {'state': self.state}", "self.best = saved", 0),
    "copied as a dict": ("saved = {'state': self.state}", "self.best = dict(saved)", 0),
    "put into a list": ("saved = {'state': self.state}", "self.history.append(saved)", 0),
    "handed out": ("saved = {'state': self.state}", "saver.save(path, saved)\n        return saved['state']", 0),
    "taken out": ("saved = {'state': self.state}", "self.best = saved['state']", 0),
    "kept where it stands": ("saved = self.state", "saver.save(path, saved)", 0),
}


@pytest.mark.parametrize(("made", "used", "count"), GATHERED.values(), ids=GATHERED)
def test_a_dict_that_another_method_only_hands_to_calls_keeps_nothing(made: str, used: str, count: int) -> None:
    code = f"""
    class Learner:
        def __init__(self, state):
            self._step = jax.jit(_step)
            self.state = state

        def train(self, batches):
            for batch in batches:
                self.state = self._step(self.state, batch)

        def keep(self, saver, path):
            {made}
            USED
    """
    assert len(findings(textwrap.dedent(code).replace("USED", used))) == count


def test_a_dict_of_the_function_that_steps_may_be_read_after_the_next_step() -> None:
    code = """
    def train(state, batches, saver):
        step = jax.jit(_step)
        for batch in batches:
            saved = {"state": state}
            state = step(state, batch)
            saver.save(saved)
    """
    assert not findings(code)


def test_what_two_states_begin_as_is_copied_for_one_of_them() -> None:
    code = """
    def _both(state, target, batch):
        state = _step(state, batch)
        return state, jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, target, state.params)

    class Learner:
        def __init__(self, network, key, tx):
            params = network.init(key)
            self._step = jax.jit(_both)
            self.state = TrainState.create(apply_fn=network.apply, params=params, tx=tx)
            self.target_params = FIRST

        def train(self, batches):
            for batch in batches:
                self.state, self.target_params = self._step(self.state, self.target_params, batch)
    """
    (one,) = findings(code.replace("FIRST", "params"))
    assert one.suggestion is not None
    assert "two of the first ones hold `params`" in one.suggestion.text
    assert not one.suggestion.edits
    (own,) = findings(code.replace("FIRST", "network.init(key)"))
    assert own.suggestion is not None
    assert "two of the first ones" not in own.suggestion.text
    assert own.suggestion.edits


def test_nothing_is_not_held_by_two() -> None:
    code = """
    def count():
        global counted
        counted = 1

    def _both(state, target, batch):
        state = _step(state, batch)
        return state, jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, target, state.params)

    class Learner:
        def __init__(self):
            self._step = jax.jit(_both)
            self.state = None
            self.target_params = None

        def train(self, batches):
            for batch in batches:
                self.state, self.target_params = self._step(self.state, self.target_params, batch)
    """
    assert "two of the first ones" not in advice(code)


@pytest.mark.parametrize(
    ("begun", "target", "shared"),
    [
        ('params=begun["params"]', 'begun["params"]', 'begun["params"]'),
        ("params=begun.params", "begun.params", "begun.params"),
        ("params=begun.params", "begun.statistics", None),
        ('params=begun["params"]', 'begun["statistics"]', None),
    ],
)
def test_a_part_that_two_states_begin_as_is_named(begun: str, target: str, shared: str | None) -> None:
    code = f"""
    def _both(state, target, batch):
        state = _step(state, batch)
        return state, jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, target, state.params)

    class Learner:
        def __init__(self, network, key, tx):
            begun = network.init(key)
            self._step = jax.jit(_both)
            self.state = TrainState.create(apply_fn=network.apply, {begun}, tx=tx)
            self.target = Target.create(params={target})

        def train(self, batches):
            for batch in batches:
                self.state, self.target = self._step(self.state, self.target, batch)
    """
    (one,) = findings(code)
    assert one.suggestion is not None
    assert ("two of the first ones hold" in one.suggestion.text) == (shared is not None)
    assert shared is None or f"hold `{shared}`: one of them" in one.suggestion.text


def test_what_is_begun_anew_in_between_is_not_held_by_two() -> None:
    code = """
    def _both(state, target, batch):
        state = _step(state, batch)
        return state, jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, target, state.params)

    class Learner:
        def __init__(self, network, key, other, tx):
            self._step = jax.jit(_both)
            params = network.init(key)
            self.state = TrainState.create(apply_fn=network.apply, params=params, tx=tx)
            params = network.init(other)
            self.target = Target.create(params=params)

        def train(self, batches):
            for batch in batches:
                self.state, self.target = self._step(self.state, self.target, batch)
    """
    (one,) = findings(code)
    assert one.suggestion is not None
    assert "two of the first ones" not in one.suggestion.text


@pytest.mark.parametrize(
    ("handed", "count"),
    [
        ("batch", 1),
        ("(batch, state.step)", 0),
        ("batch + (state.step,)", 0),
        ("[*batch, state.step]", 0),
        ('{"batch": batch, "step": state.step}', 0),
        ("both", 0),
        ("(batch, state.step + 1)", 1),
        ("batch + state.step", 1),
        ("(batch, other.step)", 1),
    ],
)
def test_what_another_argument_holds_in_a_collection_is_not_donated(handed: str, count: int) -> None:
    code = f"""
    def train(state, other, batches):
        step = jax.jit(_step)
        for batch in batches:
            both = {{"batch": batch, "step": state.step}}
            state = step(state, {handed})
        return state
    """
    assert len(findings(code)) == count


@pytest.mark.parametrize(
    ("handed", "field", "count"),
    [("model", "train_state", 0), ("model", "opt_state", 1), ("", "train_state", 1)],
    ids=["of another", "an optimizer's", "of its own"],
)
def test_what_an_object_that_is_handed_in_holds_it_may_hand_to_others(handed: str, field: str, count: int) -> None:
    """A target network that is begun as the policy's arrays would lose them."""
    own = "" if handed else "    model = Model(key)\n"
    loop = f"    for batch in batches:\n        model.{field} = step(model.{field}, batch)\n"
    code = f"step = jax.jit(_step)\n\ndef train({handed or 'key'}, batches):\n{own}{loop}"
    assert len(findings(code)) == count


CREATED = """
def _both(actor, target, batch):
    return _step(actor, batch), jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, target, actor)

class Learner:
    def __init__(self, key, sizes, example):
        key, first, second = jax.random.split(key, 3)
        net = Network(sizes)
        self._step = jax.jit(_both)
        self.actor = Model.create(net, FIRST)
        self.target = Model.create(net, SECOND)

    def train(self, batches):
        for batch in batches:
            self.actor, self.target = self._step(self.actor, self.target, batch)
"""


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("inputs=[first, example]", "inputs=[second, example]", False),
        ("(first, example)", "(second, example)", False),
        ("example", "example", True),
    ],
)
def test_what_is_made_of_a_key_holds_neither_its_definition_nor_the_example(
    first: str, second: str, shared: bool
) -> None:
    text = advice(CREATED.replace("FIRST", first).replace("SECOND", second))
    assert ("two of the first ones hold" in text) == shared


BEGUN = """
class Learner:
    def train(self, batches, evaluate):
        step = jax.jit(_step)
        state = TrainState.create(apply_fn=self.net.apply, params=self.params, tx=self.tx)
        for i, batch in enumerate(batches):
            state = step(state, batch)
            if i % 100 == 0:
                BODY
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("score = evaluate(self.params)\n                self.params = state.params", 0),
        ("self.params = state.params\n                score = evaluate(self.params)", 1),
    ],
)
def test_a_field_that_holds_a_part_is_not_read_when_that_is_gone(body: str, count: int) -> None:
    assert len(findings(BEGUN.replace("BODY", body))) == count


@pytest.mark.parametrize(
    ("body", "again"),
    [
        ("print(evaluate(self.params))", "self.params"),
        ("print(evaluate(self.other))", None),
        ("self.params = state.params\n                score = evaluate(self.params)", None),
    ],
)
def test_a_field_that_the_first_state_is_made_of_and_that_is_read_again_is_named(body: str, again: str | None) -> None:
    """`RuntimeError: Array has been deleted`, in the first turn."""
    text = advice(BEGUN.replace("BODY", body))
    assert ("is read again" in text) == (again is not None)
    assert again is None or f"made of jax.tree.map(jnp.copy, {again})" in text


@pytest.mark.parametrize(
    ("first", "body", "is_again"),
    [
        ("params", "print(evaluate(params))", True),
        ("params", "print(evaluate(state.params))", False),
        ("params", "params = state.params; print(evaluate(params))", False),
        ("other", "print(evaluate(params))", False),
        ("Model(params)", "print(evaluate(params))", True),
        ("Model(key=key)", "print(evaluate(key))", False),
    ],
)
def test_a_variable_that_the_first_state_is_made_of_and_that_is_read_again_is_named(
    first: str, body: str, is_again: bool
) -> None:
    code = f"""
    def train(batches, net, tx, evaluate, seed):
        step = jax.jit(_step)
        key = jax.random.key(seed)
        params, other = net.init(key), net.init(key)
        state = TrainState.create(apply_fn=net.apply, params={first}, tx=tx)
        for batch in batches:
            state = step(state, batch)
            {body}
        return state
    """
    text = advice(code)
    assert ("the first state holds `params`, which is read again" in text) == is_again == ("read again" in text)


@pytest.mark.parametrize(("given", "written"), [("(1,)", "(0,)"), ("1", "0"), ("[1]", "0")])
def test_the_parentheses_of_what_was_donated_stay(given: str, written: str) -> None:
    code = f"""
    def train(batches, tx):
        state = begin(tx)
        step = jax.jit(_step, donate_argnums={given})
        for batch in batches:
            state = step(state, batch)
        return state
    """
    (finding,) = findings(code)
    assert finding.suggestion is not None
    (edit,) = finding.suggestion.edits
    line = (HEAD + textwrap.dedent(code)).splitlines()[edit.location.line - 1]
    made = line[: edit.location.column - 1] + edit.text + line[edit.location.end_column - 1 :]
    assert f"donate_argnums={written})" in made
