"""Code that nobody runs in earnest: a case of a table of cases, what is named in such a table alone, a function or a
method that nothing names, where nobody else can be meant to: a private one, one of an experiment's files, one of a
project that others cannot install; a method that all have their own of; what a loop of jax does whose result nobody
reads; and what stands in a file that cannot be imported.

In: a node of a Source that a rule speaks of. Out: whether its own speed is nobody's concern.
"""

from __future__ import annotations

from collections import Counter

import libcst as cst

from fusionlint.lazily import regex
from fusionlint.source.answers import of_project
from fusionlint.source.asked import DECORATORS, EVERYWHERE, NAMED
from fusionlint.source.broken_imports import broken
from fusionlint.source.facts import Function, Raw, last_name
from fusionlint.source.names import JIT
from fusionlint.source.overridden import is_overridden
from fusionlint.source.places import Place
from fusionlint.source.project import Project
from fusionlint.source.tree import Source

_LOOPS = ("jax.lax.fori_loop", "jax.lax.while_loop", "jax.lax.scan")
# What is left of a loop for that alone: `jax.debug.print`, a callback.
_TELLS = regex(r"\bdebug\b|callback")
# What calls a private function of a file is seldom further away than this.
_DEPTH = 3
_MAKES_A_DICT = "dict"
# What a table of cases is called, or handed on as: `testcases=[...]`. Any other list of dicts may be a choice of users.
_CASES = regex(r"(?i)(^|_)(test_?)?cases$|(^|_)tests?$")
# Where no user of a library looks for a function: among the scripts of an experiment. In private modules they do.
_OF_EXPERIMENTS = regex(r"(^|/)(experiments?|baselines)/")
# What names a method by a word that may be put together.
_ASKS_BY_NAME = "getattr"
# Python's own classes that have no methods to be called by.
_ONLY_LIKE = frozenset(("ABC", "Generic", "Protocol", "object"))
# So many files import from what is a library of its project.
_MANY = 5
# What is called so is where a script begins, whoever calls it.
_BEGINS = regex(r"^(main|run|train|eval(uate)?|test|launch|cli|sweep)(_|$)")


def is_for_nobody(node: cst.CSTNode, source: Source) -> bool:
    """Whether `node` is part of a case of a table of cases, of a private function that nothing calls, of a file that
    cannot be imported."""
    if source.path in broken(source.project):
        return True
    around = [above for above in source.ancestors(node) if isinstance(above, cst.Lambda | cst.FunctionDef)]
    outer = around[-1] if around else None
    if isinstance(outer, cst.Lambda):
        return _is_a_case(outer, source)
    if isinstance(outer, cst.FunctionDef) and (
        _is_never_named(outer, source, _DEPTH)
        or _is_a_method_that_nothing_names(outer, source)
        or is_overridden(outer, source)
    ):
        return True
    if any(isinstance(one, cst.FunctionDef) and _is_for_a_loop_that_goes(one, source) for one in around[:-1]):
        return True
    top = top_around(node, source)
    return top is not None and _is_named_by_cases(top, source, _DEPTH)


def is_never_read(made: cst.CSTNode, source: Source) -> bool:
    """Whether what `made` gives gets names in a function that nothing reads after it, `kept, _ = fori_loop(...)`: of a
    compiled program XLA leaves it out."""
    statement = source.parent(made)
    if not isinstance(statement, cst.Assign) or statement.value is not made or not source.scope(made):
        return False
    names: list[cst.Name] = []
    todo: list[cst.CSTNode] = [each.target for each in statement.targets]
    while todo:
        match todo.pop():
            case cst.Name() as name:
                names.append(name)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                todo += [element.value for element in elements]
            case _:
                return False  # a field, or a place, that others may read
    return not any(source.reads(name) for name in names if name.value != "_")


def _is_for_a_loop_that_goes(function: cst.FunctionDef, source: Source) -> bool:
    """Whether a function is handed to loops of jax, and to nothing else, of which nobody reads what they leave: XLA
    drops them, but not what they print."""
    reads = [*source.reads_at_all(function.name)]
    loops = [source.handed_to(read) for read in reads]
    is_for_them = all(source.calls(one, *_LOOPS) and is_never_read(one, source) for one in loops)
    return bool(loops) and is_for_them and not _TELLS.search(source.code(function))


def _is_a_case(function: cst.Lambda, source: Source) -> bool:
    """Whether a lambda is a value of one of several dicts in a list, at the file's own level: `[{"callable": lambda x:
    ..., "shapes": [(3,)]}, ...]`. Each is run once, to see what comes of it. In a dict by itself it may be a choice of
    a user, `ACTIVATIONS = {"gelu": lambda x: ...}`."""
    case = source.parent(source.parent(function) or function)
    match source.parent(function), case:
        case cst.DictElement(), cst.Dict():
            pass
        case cst.Arg(keyword=cst.Name()), cst.Call(func=cst.Name(name)) if name == _MAKES_A_DICT:
            pass
        case _:
            return False
    listed = source.parent(case) if case is not None else None
    return isinstance(listed, cst.Element) and isinstance(source.parent(listed), cst.List | cst.Tuple)


def _is_named_by_cases(top: cst.FunctionDef | cst.ClassDef, source: Source, depth: int) -> bool:
    """Whether a function or a class of the file's own level is named in a table of cases, `testcases=[{"callable":
    _model, "shapes": [(2,)]}]`, and nowhere else but in what is: each case is run once, to see what comes of it."""
    place = source.place(top)._replace(scope=top.name.value)
    if top.decorators or source.scope(top) or is_in_quotes(top.name.value, source):
        return False
    if any(caller.path != source.path for caller in source.project.callers(source.project.name_of(place))):
        return False
    reads = [*source.reads_at_all(top.name)]
    outside = [read for read in reads if top_around(read, source) is not top]
    return bool(outside) and all(_is_of_a_case(read, source, depth) for read in outside)


def _is_of_a_case(read: cst.Name, source: Source, depth: int) -> bool:
    """Whether a name is read in one of several dicts in a list that is called so, or by what only cases name."""
    top = top_around(read, source)
    if top is not None and not any(isinstance(above, cst.Decorator) for above in source.ancestors(read)):
        return depth > 0 and _is_named_by_cases(top, source, depth - 1)
    above = list(source.ancestors(read))
    lists = [one for one in above if isinstance(one, cst.List | cst.Tuple)]
    if not lists or not any(isinstance(one, cst.Dict) for one in above[: above.index(lists[-1])]):
        return False
    match source.parent(lists[-1]):
        case cst.Arg(keyword=cst.Name(name)) | cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]):
            return bool(_CASES.search(name))
        case cst.AnnAssign(target=cst.Name(name)):
            return bool(_CASES.search(name))
    return False


def _is_never_named(function: cst.FunctionDef, source: Source, depth: int) -> bool:
    """Whether a function of the file's own level says by its name that it is for this file alone, no trace is seen to
    get there, no other file calls it, and nothing here names it but itself and others of that kind. Or it stands where
    nobody else looks for it, and no other file names it."""
    name = function.name.value
    place = source.body_place(function)
    if is_in_quotes(name, source) or place.outer.scope:
        return False
    is_private = name.startswith("_") and not function.decorators and source.contexts.get(place) != "traced"
    if not is_private and place not in named_nowhere(source.project):
        return False
    if any(caller.path != source.path for caller in source.project.callers(source.project.name_of(place))):
        return False
    reads = [*source.reads_at_all(function.name)]
    others = (above for above in (_outermost(read, source) for read in reads) if above is not function)
    return all(
        depth > 0 and isinstance(above, cst.FunctionDef) and _is_never_named(above, source, depth - 1)
        for above in others
    )


def _is_a_method_that_nothing_names(method: cst.FunctionDef, source: Source) -> bool:
    """Whether nothing of the project names a method, nor could: its class is derived from nothing elsewhere that might
    call it, and is for this file alone or for a project that nobody else can install."""
    place, name = source.body_place(method), method.name.value
    owner = source.facts.functions[place.scope].owner if place.scope in source.facts.functions else ""
    if not owner or "." in owner or is_in_quotes(name, source):
        return False
    if not (name.startswith("_") or Place(source.path, owner) in _kept_to_itself(source.project)):
        return False
    is_called = _BEGINS.match(name) or name.startswith("__") or name in named_as_parts(source.project)
    if is_called or _ASKS_BY_NAME in {call.value.callee.name for call in source.facts.calls if call.value.callee}:
        return False
    lineage = source.project.lineage(Place(source.path, owner))
    is_plain = not any(_is_of_others(each, source.project) for each in lineage)
    return is_plain and is_only_compiled(source.project, source.path, source.facts.functions[place.scope])


def _is_of_others(owner: Place, project: Project) -> bool:
    """Whether a class is decorated, or derived from one that no file of the project defines, which may call what it
    has; one of Python's that only says what a class is like calls nothing."""
    one = project.files[owner.path].classes[owner.scope]
    plain = sum(last_name(base.name) in _ONLY_LIKE for base in one.bases)
    return bool(one.decorators) or len(project.bases(owner)) + plain < len(one.bases)


@of_project
def named_nowhere(project: Project) -> frozenset[Place]:
    """The functions at the own level of files from which others import, of experiments and of what nobody can install,
    that none of them imports or names as a part of anything. Whatever is decorated, but for a jit, the decorator may
    keep."""
    project.log.asked.update(((EVERYWHERE, NAMED), (EVERYWHERE, DECORATORS)))
    named = {*named_as_parts(project), *map(last_name, imported(project))}
    return frozenset(
        Place(path, scope)
        for path in _among_others(project)
        for scope, function in project.files[path].functions.items()
        if scope.isidentifier() and scope not in named and not _BEGINS.match(scope)
        if is_only_compiled(project, path, function)
    )


@of_project
def _kept_to_itself(project: Project) -> frozenset[Place]:
    """The classes at the own level of such files, of what nobody can install: of others a user calls the methods."""
    files = (project.files[path] for path in _among_others(project))
    return frozenset(Place(one.path, scope) for one in files if not one.is_for_others for scope in one.classes)


@of_project
def _among_others(project: Project) -> frozenset[str]:
    """The files from which a few others import by name, of experiments and of projects that nobody can install: who
    uses them is seen here. What many import from is a library, from which a fork may use what nobody here does."""
    project.log.asked.add((EVERYWHERE, NAMED))
    seen = {
        path: last_name(facts.module)
        for path, facts in project.files.items()
        if not facts.is_for_others or _OF_EXPERIMENTS.search(facts.inside)
    }
    if not seen:
        return frozenset()
    raws = [facts.raw for facts in project.files.values()]
    users = Counter(module for raw in raws for module in _imported_from(raw))
    whole = {last_name(to) for raw in raws for key, (_, to, _) in raw.bindings[""].items() if key.startswith("*")}
    return frozenset(path for path, name in seen.items() if name not in whole and 0 < users[name] < _MANY)


def _imported_from(raw: Raw) -> set[str]:
    """The last names of the modules that a file imports, or imports something from."""
    return {last_name(name) for target in raw.imports() for name in (target, target.rpartition(".")[0])}


@of_project
def imported(project: Project) -> frozenset[str]:
    """The full names of all that some file of a project imports."""
    project.log.asked.add((EVERYWHERE, NAMED))
    return frozenset(target for facts in project.files.values() for target in facts.raw.imports())


@of_project
def named_as_parts(project: Project) -> frozenset[str]:
    """What any file of a project names as a part of anything: a method that nothing names so, nothing calls."""
    project.log.asked.add((EVERYWHERE, NAMED))
    return frozenset[str]().union(*(facts.raw.attributes for facts in project.files.values()))


def is_only_compiled(project: Project, path: str, function: Function) -> bool:
    """Whether nothing but a jit stands above a function."""
    names = [*project.decorators(path, function)]
    return len(names) == len(function.decorators) and JIT.issuperset(names)


def is_in_quotes(name: str, source: Source) -> bool:
    """Whether a file has a name as a text, to ask by."""
    return any(f"{quote}{name}{quote}".encode() in source.data for quote in ('"', "'"))


def _outermost(node: cst.CSTNode, source: Source) -> cst.FunctionDef | None:
    """The def of the file's own level that `node` is inside of."""
    top = top_around(node, source)
    return top if isinstance(top, cst.FunctionDef) else None


def top_around(node: cst.CSTNode, source: Source) -> cst.FunctionDef | cst.ClassDef | None:
    """The def or the class of the file's own level that `node` is inside of."""
    around = [above for above in source.ancestors(node) if isinstance(above, cst.FunctionDef | cst.ClassDef)]
    return around[-1] if around else None
