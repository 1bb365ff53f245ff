"""Operations counted a second time: from torch's own decompositions of an operator into simpler ones."""

from collections import Counter

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# What is no arithmetic operation, comparison or elementary function: copies, conversions, views and fills, and
# selections by a mask with what combines masks.
COPIES = """
    _conj _local_scalar_dense _neg_view _to_copy _unsafe_view alias arange as_strided broadcast_in_dim
    broadcast_tensors cat clone collapse_view conj constant_pad_nd contiguous convert_element_type copy copy_
    copy_to detach device_put diagonal empty empty_like empty_permuted empty_strided expand expand_as eye fill fill_
    flatten flip full full_like gather imag index index_select iota item lift_fresh lift_fresh_copy movedim new_empty
    new_full new_ones new_zeros ones ones_like permute real repeat reshape resolve_conj rev roll scalar_tensor
    select slice split split_dim split_with_sizes squeeze stack t to transpose unbind unfold unsqueeze view
    view_as_complex view_as_real view_of view_of_dtype zero_ zeros zeros_like
"""
SELECTIONS = """
    __and__ __or__ __xor__ bitwise_and bitwise_not bitwise_or bitwise_xor logical_and logical_not logical_or
    masked_fill where
"""
FREE = frozenset((COPIES + SELECTIONS).split())
# Operations for each element that goes in; all others are one for each that comes out. A variance subtracts the
# mean, squares and adds up; decompositions that need it compute the mean beside it.
REDUCTIONS = {
    **dict.fromkeys(("all", "amax", "amin", "any", "argmax", "argmin", "cumprod", "cumsum"), 1),
    **dict.fromkeys(("max", "mean", "min", "nansum", "prod", "sum"), 1),
    **dict.fromkeys(("linalg_vector_norm", "vector_norm"), 2),
    **dict.fromkeys(("var", "var_mean"), 3),
}


class DecomposedWork(TorchDispatchMode):
    """While it is active, decomposes whatever torch can and counts in ``operations`` what is left, by name."""

    def __init__(self):
        super().__init__()
        self.operations = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in decomposition_table:
            with self:
                result = decomposition_table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        name = func._schema.name.partition("::")[2]
        # x != x asks for NaN, which is no part of a formula.
        asks_for_nan = name in ("eq", "ne") and len(args) == 2 and args[0] is args[1]
        if name not in FREE and not asks_for_nan:
            leaves = tree_leaves(args[0] if name in REDUCTIONS else result)
            elements = sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))
            self.operations[name] += REDUCTIONS.get(name, 1) * elements
        return result


def decomposed_work(function, *args, **kwargs):
    """Operations of one call."""
    with torch.no_grad(), DecomposedWork() as work:
        function(*args, **kwargs)
    return sum(work.operations.values())
