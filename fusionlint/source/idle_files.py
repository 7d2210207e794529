"""Files of which nobody minds how fast they are, by what they and their folders are called.

In: the path of a file in its project.
"""

from __future__ import annotations

from functools import cache

from fusionlint.lazily import regex

# Nobody minds how fast these are: tests, benchmarks, pictures, what a quicker form is held against, what is deprecated,
# what shows a bug or looks for one, what makes up data to try something on, or the state that a simulation begins with,
# once. What they do to a project's functions is no use of them. They are a third of the code of jax, flax, brax,
# maxtext and numpyro.
_IDLE_FILE = regex(
    r"(^|/)(((unit|smoke|integration)[_-]?)?tests?|test_\w+|testing|(\w+_)?benchmark(s|ing)?|plots?|plotting"
    r"|visuali[sz]ations?|visuali[sz]ers?"
    r"|reference|_?deprecated|outdated|obsolete|(\w+_)?old|[~_]archive|archived(_\w+)?|debug|bugs?(_\w+)?|repros?"
    r"|initiali[sz]ations?|initial_conditions?(_\w+)?|data(sets?)?/(\w+/)?synthetic"
    # What draws the pictures of a documentation.
    r"|docs?/(\w+/)*(assets|_?static|images?|img|figures?))/"
    r"|^archive/"
    r"|(^|/)((fake|synthetic|dummy)_data[^/]*|data(sets?)?/synthetic[^/]*)\.py$"
    r"|(^|/)(test_[^/]*|[^/]*_tests?|([^/]*_)?test_(utils?|lib|case|base|data|helpers?)|Test_?Cases?|testing(_utils?)?"
    r"|conftest|([^/]*_)?fixtures?"
    r"|[^/]*_bench|bench(mark)?_[^/]*|bench(mark(s|ing)?)?|[^/]*_benchmark(s|ing)?"
    r"|plot[^/]*|[^/]*_plot(s|ting)?|visuali[sz][^/]*|viz(_[^/]*)?|viewer"
    r"|analy[sz]e[^/]*|(diagnose|debug|check|inspect|sanity)(_[^/]*)?|[^/]*_debug|naive|ref(erence)?|[^/]*_ref|[^/]*_old"
    r"|repro_[^/]*|[^/]*_repro|initiali[sz]ations?|initial_conditions?(_\w+)?)"
    r"\.py$"
)
# Sphinx-Gallery runs what is called plot_*: examples of everything.
_GALLERY = regex(r"(^|/)(examples?|gallery|tutorials?)/(.*/)?plot_[^/]*\.py$")


@cache
def is_idle_file(inside: str) -> bool:
    """Whether a file, by its path in its project, is a test, a benchmark or a picture."""
    return bool(_IDLE_FILE.search(inside)) and not _GALLERY.search(inside)
