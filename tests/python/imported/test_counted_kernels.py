"""Which kernel of ncu's is which launch of a trace, the two forms of their names, and counters of metrics."""

from __future__ import annotations

import itertools
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


def test_one_within_the_other():
    assert places("abcab", "abcab") == [1, 2, 3, 4, 5]
    # The first kernels of ncu's run look like the trace's, and the whole of it comes later.
    assert places("abxabcd", "abcd") == [4, 5, 6, 7]
    assert places("abcd", "xabcdy") == [0, 1, 2, 3, 4, 0]
    # Another kernel ran between them.
    assert places("abcxdef", "abcydef") == [1, 2, 3, 0, 5, 6, 7]
    # ncu counted some kernels alone.
    assert places("bdb", "abcdab") == [0, 1, 0, 2, 0, 3]
    assert places("x", "ab") == [0, 0]
    assert places("ab", "") == []


def test_steps_take_the_counters_of_one():
    assert places("abc", "abcabcabc", steps=3) == [1, 2, 3] * 3
    assert places("abc", "xabcabcy", steps=2) == [0, 1, 2, 3, 1, 2, 3, 0]
    assert places("abcdefghij", "abcdefghijxab") == [*range(1, 11), 0, 0, 0]
    # Two layers of one step with the same kernels, of which ncu counted one.
    for steps in (0, 1, 3):
        with pytest.raises(NcuError, match="ambiguous"):
            places("abc", "abcabc", steps)


@pytest.mark.parametrize(("counted", "traced"), [("abc", "cab"), ("aab", "aba"), ("aabb", "abab"), ("abxab", "yab")])
def test_what_is_refused(counted, traced):
    with pytest.raises(NcuError) as refused:
        places(counted, traced)
    assert "record_function" in str(refused.value)


def all_ways(part, whole, copies):
    starts = [start for start in range(len(whole) - len(part) + 1) if whole[start : start + len(part)] == part]
    return [
        chosen
        for chosen in itertools.combinations(starts, copies)
        if all(later - earlier >= len(part) for earlier, later in itertools.pairwise(chosen))
    ]


def by_force(counted, traced, steps):
    """Try all ways to lay the shorter list into the longer one; None unless there is exactly one."""
    here = [place for place, name in enumerate(traced) if name in counted]
    there = [place for place, name in enumerate(counted) if name in traced]
    trace, table = [traced[place] for place in here], [counted[place] for place in there]
    if len(trace) <= len(table):
        ways = [list(range(start, start + len(trace))) for (start,) in all_ways(trace, table, 1)]
    else:
        ways = []
        for copies in (1, *([steps] if steps > 1 else [])):
            ways = ways if len(ways) == 1 else []
            for starts in [] if ways else all_ways(table, trace, copies):
                way = [-1] * len(trace)
                for start in starts:
                    way[start : start + len(table)] = range(len(table))
                ways.append(way)
    if len(ways) != 1:
        return None
    found = [0] * len(traced)
    for place, other in zip(here, ways[0], strict=True):
        found[place] = there[other] + 1 if other >= 0 else 0
    return found


def test_small_lists_against_all_ways():
    numbers = random.Random(46)
    matched = refused = 0
    for _ in range(6000):
        letters = "abc"[: numbers.randint(1, 3)]
        counted, traced = ("".join(numbers.choices(letters + more, k=numbers.randint(1, 9))) for more in ("x", "y"))
        if numbers.random() < 0.5:  # one within the other, maybe several times
            traced = numbers.choice("ya") * numbers.randint(0, 1) + counted * numbers.randint(1, 3)
        steps = numbers.randint(0, 3)
        wanted = by_force(counted, traced, steps)
        try:
            assert places(counted, traced, steps) == wanted, (counted, traced, steps)
            matched += 1
        except NcuError:
            assert wanted is None, (counted, traced, steps)
            refused += 1
    assert min(matched, refused) > 1000


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
    assert found(of(("a", "second")), two) == ([0, 1], True)
    assert found(two, two[::-1]) == ([2, 1], True)
    # The order is enough, and ranges that one side lacks say nothing (a backward's threads have none).
    assert found(of(("a", ""), ("b", "")), of(("a", "x"), ("b", "x"))) == ([1, 2], False)
    assert found(of(("a", "x"), ("b", "")), of(("a", "x"), ("b", "x"))) == ([1, 2], False)
    # Names that the other side never has are no ranges.
    assert found(of(("a", "main x")), of(("a", "x other"))) == ([1], False)
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


@pytest.mark.parametrize("traced", SAME)
def test_two_demanglers_give_one_form(traced):
    assert plain_name(traced) == plain_name(SAME[traced])
    assert function_name(traced) == function_name(SAME[traced])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void f<4, float>(int)", "void f<(int)2, float>(int)"),
        ("void f<(bool)1>(int)", "void f<(bool)0>(int)"),
        ("void f<float>(int)", "void f<double>(int)"),
        ("void f<{lambda()#1}>()", "void f<[lambda() (instance 2)]>()"),
        ("sgemm_128x64", "sgemm_64x128"),
    ],
)
def test_other_kernels_stay_apart(one, other):
    assert plain_name(one) != plain_name(other)


def test_names_of_functions_and_mangled_ones():
    assert function_name("void at::native::vectorized<(int)4, at::F<float>>(int, T2)") == "vectorized"
    assert function_name("void (anonymous namespace)::softmax<float>(float*)") == "softmax"
    assert function_name("vector_add(float const*, float*)") == "vector_add"
    assert plain_name("_Z10vector_addPKfPf") == plain_name("vector_add(float const*, float*)")
    assert plain_name("_ZN2at6native1kILi4EfEEvi") == plain_name("void at::native::k<(int)4, float>(int)")
    for text in ("", "(", ")", "<", ">", "a<(", "a<(int", "[lambda(", "{lambda()#", "a<4u", "a<,,", "a->b", "_Z"):
        assert plain_name(text) in text
        function_name(text)


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


def test_memory_alone():
    """Nobody asked for anything else; newer chips have another name of the same."""
    values, sources = counted({"dram__bytes.sum": 5, "lts__t_bytes.sum": 7})
    assert values == {"dram_bytes": 5, "l2_bytes": 7}
    assert set(sources) == {"dram_bytes", "l2_bytes"}
    assert counted({"dram__bytes_op_read.sum": 5})[0] == {"dram_read_bytes": 5}


@pytest.mark.parametrize("name", [SASS, SASS.replace("smsp__", "sm__")])
def test_operations_by_the_table_of_the_collector(name):
    tensor = dict.fromkeys(("fp16_dst_fp16", "fp16_dst_fp32", "bf16_dst_fp32", "tf32_dst_fp32", "int8", "fp64"), 0)
    metrics = {TENSOR.format(types): count for types, count in (tensor | {"bf16_dst_fp32": 4096}).items()}
    values, sources = counted(sass(name, ffma=10, fadd=1, hfma=3) | metrics)
    assert (values["fp32_flops"], values["fp16_flops"]) == (2 * 10 + 1, 4 * 3)
    assert (values["tensor_bf16_flops"], values["tensor_fp16_flops"]) == (4096, 0)
    metrics = [name.format(kind) for kind in ("fadd", "fmul", "ffma")]
    assert sources["fp32_flops"] == [metrics, f"{metrics[0]} + {metrics[1]} + 2 * {metrics[2]}", ""]
    assert not {"tensor_fp8_flops", "tensor_fp4_flops"} & set(sources)  # chips of 8.0 have none of these


def test_what_was_not_asked_for_may_have_been_executed():
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


def test_instructions_of_tensor_cores_that_are_all_of_one_kind():
    known = sass(hfma=1) | {ncu.TENSOR_INSTRUCTIONS: 5, ncu.TENSOR_HALF_FMA: 5}
    assert counted(known, "8.6")[0]["tensor_fp16_flops"] == 0


def test_times_by_cycles():
    """14,100 cycles at 1.41 of them in a nanosecond."""
    values, sources = counted({ncu.CYCLES: 14_100, ncu.RATE: 1.41e9})
    assert values["time_ns"] == pytest.approx(10_000)
    assert sources["time_ns"][0] == [ncu.CYCLES, ncu.RATE]


def test_all_metrics_of_counters_are_known():
    """Each counter that the collector has can be made of what an export holds."""
    names = {f"{name}.sum" for names in _report.counter_metrics().values() for name in names}
    counters = _report.counters_of(names)
    assert all(terms for _, _, terms, _ in counters)
    assert len({name for name, *_ in counters}) == len(counters) == 16
