"""What a call of a well-known function returns: a jax array, several of them, a key, a numpy array, a number."""

from __future__ import annotations

from fusionlint.lazily import regex
from fusionlint.patterns.values.annotations import Kind

_NUMBERS = frozenset(("len", "int", "float", "bool", "range", "round", "ord", "hash"))
_MADE_KEYS = regex(r"^jax\.random\.(key|PRNGKey|split|fold_in|clone|wrap_key_data)$")
_SEVERAL = regex(
    r"^jax\.(numpy\.((array_|[hvd])?split|meshgrid|broadcast_arrays|unstack|nonzero|unravel_index|modf|frexp"
    r"|linalg\.(svd|qr|eigh|slogdet)|(diag|tril|triu)_indices(_from)?|indices|divmod)|lax\.(top_k|sort_key_val))$"
)
_KNOWN_EARLY = regex(r"^jax\.numpy\.(ndim|size)$|^math\.|^numpy\.(ndim|size)$")
_NO_ARRAY = regex(
    r"^jax\.numpy\.(shape|issubdtype|dtype|result_type|promote_types|iinfo|finfo|broadcast_shapes|vectorize|load|save"
    r"|savez|isscalar|iscomplexobj|isrealobj|can_cast|printoptions|array_repr|array_str|einsum_path"
    r"|apply_along_axis|frompyfunc|unique\w*|histogram\w*|s_|index_exp|mgrid|ogrid)$"
    r"|^jax\.random\.(key_impl|split)$|^jax\.nn\.initializers"
    r"|^jax\.lax\.(scan|while_loop|fori_loop|cond|switch|map|associative_scan|custom_\w+|axis_size|reduce|sort|select_n"
    r"|optimization_barrier|stop_gradient|psum|pmean|pmax|pmin|all_gather|all_to_all|p\w+|with_sharding_constraint)$"
)
_ARRAY_CALL = regex(r"^jax\.(numpy|random|lax|nn|image|ops|scipy\.(special|stats|linalg|signal))\.[\w.]+$")
_NO_NUMPY = regex(r"^numpy\.(random\.\w*(default_rng|seed|RandomState)|load\w*|shape|dtype|iinfo|finfo|testing\.|save)")


def returned_by(name: str) -> Kind | None:
    """What a call of the function with the qualified `name` returns; None where that is open."""
    if name in _NUMBERS or _KNOWN_EARLY.match(name):
        return "scalar"
    if _MADE_KEYS.match(name):
        return "key"
    if _SEVERAL.match(name):
        return "list"
    if _ARRAY_CALL.match(name) and not _NO_ARRAY.match(name):
        return "array"
    if name.startswith("numpy.") and not _NO_NUMPY.match(name):
        return "numpy"
    return None
