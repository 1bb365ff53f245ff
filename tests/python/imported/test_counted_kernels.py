"""Which kernel of ncu's is which launch of a trace, the two forms of their names, and counters of metrics."""

from __future__ import annotations

import math
import random

import pytest

from roofprof import _report
from roofprof.errors import NcuError
from roofprof.profiling import nsight_compute as ncu
from roofprof.profiling.counted_kernels import by_order, by_order_or_range, counters_of, function_name, plain_name
from roofprof.profiling.nsight_compute import Kernel, Table

# ---- launches


def places(counted, traced, steps=0):
    """The place among ncu's launches, from 1 on, of each launch of the trace; 0: none."""
    return [place + 1 for place in by_order([(name,) for name in traced], [(name,) for name in counted], steps)]


def test_launches_by_their_order():
    assert places("abxabcd", "abcd") == [4, 5, 6, 7]
    assert places("abcxdef", "abcydef") == [1, 2, 3, 0, 5, 6, 7]  # another kernel ran between them
    assert places("bdb", "abcdab") == [0, 1, 0, 2, 0, 3]  # some were counted alone
    assert places("abc", "xabcabcy", steps=2) == [0, 1, 2, 3, 1, 2, 3, 0]  # steps take the counters of one
    for steps in (0, 1, 3):  # two layers of one step with the same kernels, of which ncu counted one
        with pytest.raises(NcuError, match=r"ambiguous.*record_function"):
            places("abc", "abcabc", steps)


def test_what_ran_within_the_other_run_is_never_taken_for_another():
    """A program's launches, of which one side saw a part and some kernels not at all: it is that one, or none."""
    numbers = random.Random(7)
    matched = 0
    for _ in range(3000):
        program = [(numbers.choice("abcdef"), launch) for launch in range(numbers.randint(2, 30))]
        begin, end = sorted(numbers.sample(range(len(program) + 1), 2))
        unseen = numbers.sample("abcdef", numbers.randint(0, 2))
        whole, part = [one for one in program if one[0] not in unseen], program[begin:end]
        for counted, traced in ((whole, part), (part, whole)):
            try:
                found = places([name for name, _ in counted], [name for name, _ in traced])
            except NcuError:
                continue
            seen = dict(zip(traced, found, strict=True))
            matched += any(found)
            for one, place in seen.items():
                assert place == 0 or counted[place - 1] == one
                assert place or one not in counted
    assert matched > 1000


def test_ranges():
    def of(*launches):
        return [(name, tuple(ranges.split())) for name, ranges in launches]

    def found(counted, traced, steps=0):
        places, by_range = by_order_or_range(traced, counted, steps)
        return [place + 1 for place in places], by_range

    two = of(("a", "first"), ("a", "second"))
    assert found(two, of(("a", "second"))) == ([2], True)
    assert found(two, two[::-1]) == ([2, 1], True)
    # The order is enough, and ranges that one side lacks say nothing (a backward's threads have none).
    assert found(of(("a", ""), ("b", "")), of(("a", "x"), ("b", "x"))) == ([1, 2], False)
    assert found(of(("a", "x"), ("b", "")), of(("a", "x"), ("b", "x"))) == ([1, 2], False)
    # The only one is in another range.
    assert found(of(("a", "x"), ("b", "y")), of(("a", "y"), ("b", "x"))) == ([0, 0], True)
    with pytest.raises(NcuError, match="ambiguous"):
        found(of(("a", "x"), ("a", "x")), of(("a", "x")))


# ---- names

FILL = "at::native::FillFunctor<float>"
SAME = {
    f"void at::native::vectorized_elementwise_kernel<4, {FILL}, at::detail::Array<char*, 1> >(int, {FILL})": (
        f"void at::native::vectorized_elementwise_kernel<(int)4, {FILL}, at::detail::Array<char *, (int)1>>(int, T2)"
    ),
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 5, false, true>(float*, float const*)": (
        "void <unnamed>::softmax_warp_forward<float, float, float, (int)5, (bool)0, (bool)1>(T2 *, const T1 *)"
    ),
    "void splitKreduce_kernel<32, 16, int, float, true, false>(cublasSplitKParams<float>)": (
        "void splitKreduce_kernel<(int)32, (int)16, int, float, (bool)1, (bool)0>(cublasSplitKParams<T6>, const T4 *)"
    ),
    "void f<-1, 4ul, std::array<char*, 2ul>, (at::Kind)3>()": (
        "void f<(int)-1, (unsigned long)4, std::array<char *, (unsigned long)2>, (at::Kind)3>()"
    ),
    "void k<g(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#2}>(int)": (
        "void k<g(at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::[lambda(float) (instance "
        "2)]>(int)"
    ),
    "ampere_sgemm_128x64_tn": "ampere_sgemm_128x64_tn",
}


def test_two_demanglers_give_one_form():
    for traced, counted in SAME.items():
        assert plain_name(traced) == plain_name(counted)
        assert function_name(traced) == function_name(counted)
    assert function_name("void (anonymous namespace)::softmax<float>(float*)") == "softmax"
    assert plain_name("_Z10vector_addPKfPf") == plain_name("vector_add(float const*, float*)")
    for text in ("", "(", ">", "a<(", "[lambda(", "{lambda()#", "a<4u", "a->b", "_Z"):  # cut off
        assert plain_name(text) in text
        function_name(text)


def test_other_kernels_stay_apart():
    for one, other in (
        ("void f<4, float>(int)", "void f<(int)2, float>(int)"),
        ("void f<(bool)1>(int)", "void f<(bool)0>(int)"),
        ("void f<{lambda()#1}>()", "void f<[lambda() (instance 2)]>()"),
    ):
        assert plain_name(one) != plain_name(other)


# ---- counters

SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = "sm__ops_path_tensor_src_{}.sum"


def counted(metrics, capability="8.0"):
    """What the counters of one kernel are, and where they are from, by their names."""
    table = Table([Kernel("k", (), (), ())], {name: [value] for name, value in metrics.items()}, capability=capability)
    values, sources, _ = counters_of(table)
    return {name: each[0] for name, each in values.items()}, {name: rest for name, *rest in sources}


def sass(name=SASS, **of):
    kinds = [kind + what for kind in "fhd" for what in ("add", "mul", "fma")]
    return {name.format(kind): float(of.get(kind, 0)) for kind in (*kinds, *(set(of) - set(kinds)))}


@pytest.mark.parametrize("name", [SASS, SASS.replace("smsp__", "sm__")])
def test_operations_by_the_table_of_the_collector(name):
    tensor = dict.fromkeys(("fp16_dst_fp16", "fp16_dst_fp32", "bf16_dst_fp32", "tf32_dst_fp32", "int8", "fp64"), 0)
    metrics = {TENSOR.format(types): count for types, count in (tensor | {"bf16_dst_fp32": 4096}).items()}
    values, sources = counted(sass(name, ffma=10, fadd=1, hfma=3) | metrics)
    assert (values["fp32_flops"], values["fp16_flops"]) == (2 * 10 + 1, 4 * 3)
    assert (values["tensor_bf16_flops"], values["tensor_fp16_flops"]) == (4096, 0)
    assert sources["fp32_flops"][0] == [name.format(kind) for kind in ("fadd", "fmul", "ffma")]
    assert not {"tensor_fp8_flops", "tensor_fp4_flops"} & set(sources)  # chips of 8.0 have none of these


def test_what_was_not_requested_may_have_been_executed():
    values, sources = counted(sass(ffma=10))
    assert values["fp32_flops"] == 20
    assert sources["tensor_bf16_flops"][0] == [TENSOR.format("bf16_dst_fp32")]
    assert "not asked" in sources["tensor_bf16_flops"][2]
    assert "tensor_bf16_flops" not in counted(sass(ffma=10), "7.5")[1]  # Turing's tensor cores take no bf16
    assert "tensor_fp8_flops" in counted(sass(ffma=10), "9.0")[1]  # Hopper's take fp8


def test_pairs_of_fp32_on_chips_that_have_them():
    assert counted(sass(ffma=10), "9.0")[0]["fp32_flops"] == 20
    values, sources = counted(sass(ffma=10), "10.0")
    assert "fp32_flops" not in values
    assert sources["fp32_flops"][0] == [SASS.format(kind) for kind in ("fadd2", "fmul2", "ffma2")]
    pairs = sass(ffma=10, fadd2=1, fmul2=1, ffma2=1)
    assert counted(pairs, "10.0")[0]["fp32_flops"] == 20 + 2 + 2 + 4


@pytest.mark.parametrize(
    ("instructions", "halves", "capability", "none"),
    [
        (0, 64, "9.0", True),
        (2, 64, "9.0", False),
        # An A100 runs HFMA2 there: 64 threads are two warps.
        (2, 64, "8.0", True),
        (3, 65, "8.0", True),
        (3, 64, "8.0", False),
        (math.nan, 64, "8.0", False),
    ],
)
def test_instructions_of_tensor_cores_where_none_ran(instructions, halves, capability, none):
    values, _ = counted(sass(hfma=halves) | {ncu.TENSOR_INSTRUCTIONS: instructions}, capability)
    assert values["tensor_fp16_flops"] == 0 if none else math.isnan(values["tensor_fp16_flops"])


def test_times_by_cycles():
    """14,100 cycles at 1.41 of them in a nanosecond."""
    values, _ = counted({ncu.CYCLES: 14_100, ncu.RATE: 1.41e9})
    assert values["time_ns"] == pytest.approx(10_000)


def test_all_metrics_of_counters_are_known():
    """Each counter that the collector has can be made of what an export holds."""
    names = {f"{name}.sum" for names in _report.counter_metrics().values() for name in names}
    assert all(terms for _, _, terms, _ in _report.counters_of(names))
