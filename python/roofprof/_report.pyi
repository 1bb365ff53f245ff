# The compiled part of roofprof that needs no torch. Use the roofprof package; names in here may change.

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

class Provenance:
    source: Final[str]
    method: Final[str]
    date: Final[str]
    spread: Final[float | None]

class SustainedRate:
    operations_per_second: Final[float]
    seconds: Final[float]
    clock_hz: Final[float]
    power_watts: Final[float]

class FastestWork:
    shape: Final[str]
    kernel_name: Final[str]
    missing: Final[str]

class ComputeCeiling:
    dtype: Final[str]
    operations_per_second: Final[float]
    provenance: Final[Provenance]
    sustained: Final[SustainedRate | None]
    fastest: Final[FastestWork | None]

class MemoryCeiling:
    level: Final[str]
    bytes_per_second: Final[float]
    capacity_bytes: Final[int]
    provenance: Final[Provenance]
    counted_bytes_per_second: Final[float]

class NetworkCeiling:
    """A collective takes at least latency_ns + (bytes that each rank sends) / bytes_per_second."""

    collective: Final[str]
    backend: Final[str]
    ranks: Final[int]
    latency_ns: Final[float]
    bytes_per_second: Final[float]
    provenance: Final[Provenance]

class BandwidthPoint:
    """Bytes per second over one working set; ``docs/definitions.md`` says what each kind of access is."""

    working_set_bytes: Final[int]
    read: Final[float]
    triad: Final[float]
    copy: Final[float]
    write: Final[float]
    update: Final[float]
    spread: Final[float]

class BandwidthCurve:
    points: Final[list[BandwidthPoint]]
    provenance: Final[Provenance]

class CardFacts:
    """Zero and "" mean: not known."""

    compute_capability: Final[str]
    multiprocessors: Final[int]
    l2_bytes: Final[int]
    memory_bytes: Final[int]
    tdp_watts: Final[float]
    inline_ecc: Final[bool]  # its memory holds error correction among the data
    link: Final[str]
    link_bytes_per_second: Final[float]

class CalibratedNumber:
    """A number of the prediction that holds for the device."""

    name: Final[str]
    value: Final[float]

class CalibratedClass:
    """How well the numbers predict kernels of a class that were held out of the fit; errors are 0.1 for 10%."""

    name: Final[str]
    kernels: Final[int]
    median_error: Final[float]
    percentile_90: Final[float]
    median_error_before: Final[float]

class Calibration:
    """What measured kernels of the device say about its predictions; no source: it was not calibrated."""

    source: Final[str]
    numbers: Final[list[CalibratedNumber]]
    classes: Final[list[CalibratedClass]]

class Ceilings:
    def __init__(self) -> None: ...
    device: Final[str]
    compute: Final[list[ComputeCeiling]]
    memory: Final[list[MemoryCeiling]]
    curve: Final[BandwidthCurve]  # bandwidth against working set, where it was measured; else without points
    network: Final[list[NetworkCeiling]]
    calibration: Final[Calibration]  # by `roofprof calibrate`
    facts: Final[CardFacts]  # facts that are published of a card, in addition to its roofs
    # the share of the processors that others used during the measurement, if it was too large; else 0
    busy_share: Final[float]
    def bandwidth(self, read_bytes: int, write_bytes: int = 0, updated_bytes: int = 0) -> float | None:
        """Return the roof in B/s of an op that moves these bytes; ``updated_bytes`` of both are in the same place."""
    def to_dict(self) -> dict[str, Any]: ...
    def document(self, published: Ceilings | None = None) -> Document: ...
    def table(self, width: int = 120, published: Ceilings | None = None) -> str: ...
    def __bool__(self) -> bool: ...
    # Set by roofprof.roofs.ceilings, which documents them.
    @staticmethod
    def measure(device: str = "cpu", progress: Callable[[str], None] | None = None) -> Ceilings: ...
    @staticmethod
    def published(name: str) -> Ceilings: ...
    @staticmethod
    def load(path: Any) -> Ceilings: ...
    def save(self, path: Any, notes: Any = ()) -> None: ...

def ceilings_from_dict(ceilings: dict[str, Any]) -> Ceilings: ...
def given_ceilings() -> tuple[Ceilings, list[str]] | None: ...
def bus_factor(collective: str, ranks: int) -> float: ...
def is_floating(dtype: str) -> bool: ...
def published_ceilings(name: str) -> Ceilings: ...
def published_for_driver_name(driver_name: str) -> Ceilings | None: ...
def load_ceilings(path: str | bytes) -> tuple[Ceilings, list[str]]: ...
def save_ceilings(ceilings: Ceilings, path: str | bytes, notes: list[str]) -> None: ...

class Field:
    """One figure of one kind of row: its names, and when a report has it."""

    name: Final[str]  # of the row's attribute and the table's column; self figures have names of their own, `self_time`
    heading: Final[str]  # of the table's column
    aliases: Final[tuple[str, ...]]  # further names that `table(columns=...)` takes
    unit: Final[str]  # of the row's attribute
    # what a report must have, of "time", "device", "intervals", "counters", "roofs" and "regions"
    needs: Final[tuple[str, ...]]
    limit: Final[str]  # of an incomplete row's figure: ">=", "<=" or "?" (of what is known alone); "" if it is exact
    legend: Final[str]  # the sentence below tables that explains it; "" if there is none
    of: Final[str]  # the kind of row: "row", "group", "kernel", "rank", "collective" or "memory"
    key: Final[str]  # in JSON and CSV, where times are integer nanoseconds
    type: Final[str]  # of the row's attribute: "int | None"
    is_text: Final[bool]  # True if the CSV has text for it; else it has a number, or true and false
    def cell(self, row: Row | GroupRow | KernelRow | Rank | Collective | MemoryRow) -> str:
        """Return the cell that a table has for that row: "4.09G", ">=1.2M", "n/a"."""
    def text(self, value: float | None) -> str:
        """Return a value in this figure's unit, as tables write it. For figures that are numbers."""

def fields() -> list[Field]: ...

# Rows: what follows is written by tests/python/support/row_stubs.py.

class Row:
    path: Final[str]
    type: Final[str]
    depth: Final[int]
    calls: Final[int | None]
    params: Final[int | None]
    trainable_params: Final[int | None]
    param_bytes: Final[int | None]
    buffer_bytes: Final[int | None]
    input_shapes: Final[list[list[int]]]
    output_shapes: Final[list[list[int]]]
    output_bytes: Final[int | None]
    peak_memory: Final[int | None]
    kept_memory: Final[int | None]
    fused_bytes: Final[int | None]
    fused_bound_time: Final[float | None]
    percent_of_fused: Final[float | None]
    shared_time: Final[float | None]
    inferred: Final[bool]
    work_share: Final[float | None]
    time_min: Final[float | None]
    time_median: Final[float | None]
    time_max: Final[float | None]
    slowest_rank: Final[int | None]
    imbalance: Final[float | None]
    communication: Final[float | None]
    exposed_communication: Final[float | None]
    hidden_communication: Final[float | None]
    idle_before: Final[float | None]
    idle_between: Final[float | None]
    idle_after: Final[float | None]
    macs: Final[int]
    causal_macs: Final[int]
    flops: Final[int]
    int_ops: Final[int]
    operations_by_dtype: Final[dict[str, int]]
    flops_by_dtype: Final[dict[str, int]]
    int_ops_by_dtype: Final[dict[str, int]]
    read_bytes: Final[int]
    write_bytes: Final[int]
    bytes: Final[int]
    time: Final[float | None]
    time_low: Final[float | None]
    time_high: Final[float | None]
    time_spread: Final[float | None]
    op_time: Final[float | None]
    busy: Final[float | None]
    idle: Final[float | None]
    utilization: Final[float | None]
    host_time: Final[float | None]
    wall: Final[float | None]
    intensity: Final[float | None]
    attainable: Final[float | None]
    achieved_flops: Final[float | None]
    achieved_bandwidth: Final[float | None]
    bound: Final[str]
    compute_time: Final[float | None]
    memory_time: Final[float | None]
    lower_bound_time: Final[float | None]
    percent_of_roof: Final[float | None]
    percent_of_roof_counted: Final[float | None]
    wasted_time: Final[float | None]
    dram_bytes: Final[int | None]
    dram_read_bytes: Final[int | None]
    dram_write_bytes: Final[int | None]
    l2_bytes: Final[int | None]
    l1_bytes: Final[int | None]
    dram_intensity: Final[float | None]
    l2_intensity: Final[float | None]
    l1_intensity: Final[float | None]
    dram_bytes_ratio: Final[float | None]
    dram_read_ratio: Final[float | None]
    dram_write_ratio: Final[float | None]
    dram_bandwidth: Final[float | None]
    executed_flops: Final[int | None]
    kernel_count: Final[int | None]
    incomplete: Final[bool]
    self_macs: Final[int]
    self_causal_macs: Final[int]
    self_flops: Final[int]
    self_int_ops: Final[int]
    self_operations_by_dtype: Final[dict[str, int]]
    self_flops_by_dtype: Final[dict[str, int]]
    self_int_ops_by_dtype: Final[dict[str, int]]
    self_read_bytes: Final[int]
    self_write_bytes: Final[int]
    self_bytes: Final[int]
    self_time: Final[float | None]
    self_time_low: Final[float | None]
    self_time_high: Final[float | None]
    self_time_spread: Final[float | None]
    self_op_time: Final[float | None]
    self_busy: Final[float | None]
    self_idle: Final[float | None]
    self_utilization: Final[float | None]
    self_host_time: Final[float | None]
    self_wall: Final[float | None]
    self_intensity: Final[float | None]
    self_attainable: Final[float | None]
    self_achieved_flops: Final[float | None]
    self_achieved_bandwidth: Final[float | None]
    self_bound: Final[str]
    self_compute_time: Final[float | None]
    self_memory_time: Final[float | None]
    self_lower_bound_time: Final[float | None]
    self_percent_of_roof: Final[float | None]
    self_percent_of_roof_counted: Final[float | None]
    self_wasted_time: Final[float | None]
    self_dram_bytes: Final[int | None]
    self_dram_read_bytes: Final[int | None]
    self_dram_write_bytes: Final[int | None]
    self_l2_bytes: Final[int | None]
    self_l1_bytes: Final[int | None]
    self_dram_intensity: Final[float | None]
    self_l2_intensity: Final[float | None]
    self_l1_intensity: Final[float | None]
    self_dram_bytes_ratio: Final[float | None]
    self_dram_read_ratio: Final[float | None]
    self_dram_write_ratio: Final[float | None]
    self_dram_bandwidth: Final[float | None]
    self_executed_flops: Final[int | None]
    self_kernel_count: Final[int | None]
    self_incomplete: Final[bool]

class GroupRow:
    keys: Final[list[str]]
    phase: Final[str | None]
    op: Final[str | None]
    module: Final[str | None]
    scope: Final[str | None]
    dtype: Final[str | None]
    shapes: Final[str | None]
    calls: Final[int]
    input_elements: Final[int]
    output_elements: Final[int]
    percent_of_time: Final[float | None]
    macs: Final[int]
    causal_macs: Final[int]
    flops: Final[int]
    int_ops: Final[int]
    operations_by_dtype: Final[dict[str, int]]
    flops_by_dtype: Final[dict[str, int]]
    int_ops_by_dtype: Final[dict[str, int]]
    read_bytes: Final[int]
    write_bytes: Final[int]
    bytes: Final[int]
    time: Final[float | None]
    time_low: Final[float | None]
    time_high: Final[float | None]
    time_spread: Final[float | None]
    op_time: Final[float | None]
    busy: Final[float | None]
    idle: Final[float | None]
    utilization: Final[float | None]
    host_time: Final[float | None]
    wall: Final[float | None]
    intensity: Final[float | None]
    attainable: Final[float | None]
    achieved_flops: Final[float | None]
    achieved_bandwidth: Final[float | None]
    bound: Final[str]
    compute_time: Final[float | None]
    memory_time: Final[float | None]
    lower_bound_time: Final[float | None]
    percent_of_roof: Final[float | None]
    percent_of_roof_counted: Final[float | None]
    wasted_time: Final[float | None]
    dram_bytes: Final[int | None]
    dram_read_bytes: Final[int | None]
    dram_write_bytes: Final[int | None]
    l2_bytes: Final[int | None]
    l1_bytes: Final[int | None]
    dram_intensity: Final[float | None]
    l2_intensity: Final[float | None]
    l1_intensity: Final[float | None]
    dram_bytes_ratio: Final[float | None]
    dram_read_ratio: Final[float | None]
    dram_write_ratio: Final[float | None]
    dram_bandwidth: Final[float | None]
    executed_flops: Final[int | None]
    kernel_count: Final[int | None]
    incomplete: Final[bool]

class KernelRow:
    name: Final[str]
    kind: Final[str]
    copied: Final[str]
    module: Final[str]
    phase: Final[str]
    scope: Final[str]
    op: Final[str]
    grid: Final[list[int]]
    block: Final[list[int]]
    device: Final[int]
    in_graph: Final[bool]
    built_for: Final[str]
    percent_of_time: Final[float]
    total: Final[float]
    instances: Final[int]
    average: Final[float]
    median: Final[float]
    min: Final[float]
    max: Final[float]
    stddev: Final[float]
    bytes: Final[int | None]
    unfused_bytes: Final[int | None]
    incomplete: Final[bool]
    fused: Final[str]
    modules: Final[str]
    shared: Final[bool]
    code: Final[str]
    source: Final[str]
    flops: Final[int | None]
    intensity: Final[float | None]
    achieved_flops: Final[float | None]
    dram_bytes: Final[int | None]
    l2_bytes: Final[int | None]
    l1_bytes: Final[int | None]
    dram_intensity: Final[float | None]
    l2_intensity: Final[float | None]
    l1_intensity: Final[float | None]
    dram_bandwidth: Final[float | None]
    executed_flops: Final[int | None]
    lower_bound_time: Final[float | None]
    bound: Final[str]
    percent_of_roof: Final[float | None]

class Rank:
    rank: Final[int]
    host: Final[str]
    device: Final[str]
    model: Final[str]
    partial: Final[bool]
    steps: Final[int | None]
    step: Final[float | None]
    step_spread: Final[float | None]
    wall: Final[float | None]
    time: Final[float | None]
    compute: Final[float | None]
    communication: Final[float | None]
    exposed: Final[float | None]
    waiting: Final[float | None]
    idle: Final[float | None]
    macs: Final[int]
    flops: Final[int]
    bytes: Final[int]
    lower_bound: Final[float | None]
    percent_of_roof: Final[float | None]
    peak_memory: Final[int | None]
    incomplete: Final[bool]

class Collective:
    name: Final[str]
    op: Final[str]
    module: Final[str]
    phase: Final[str]
    group: Final[str]
    backend: Final[str]
    ranks: Final[int | None]
    hosts: Final[int | None]
    dtype: Final[str]
    shapes: Final[str]
    calls: Final[int]
    timed_calls: Final[int]
    bytes: Final[int | None]
    wire_bytes: Final[int | None]
    ring_bytes: Final[int | None]
    tree_bytes: Final[int | None]
    direct_bytes: Final[int | None]
    time: Final[float | None]
    wait: Final[float | None]
    transfer: Final[float | None]
    exposed: Final[float | None]
    algorithm: Final[str | None]
    algorithm_bandwidth: Final[float | None]
    bus_bandwidth: Final[float | None]
    bound: Final[str]
    lower_bound: Final[float | None]
    percent_of_roof: Final[float | None]
    wasted: Final[float | None]

class MemoryRow:
    category: Final[str]
    module: Final[str]
    phase: Final[str]
    before: Final[bool]
    storages: Final[int]
    bytes: Final[int]
    percent_of_all: Final[float]

# Rows end here.

class Note:
    def __init__(self, code: str, text: str, where: Sequence[str] = ()) -> None: ...
    level: Final[str]
    code: Final[str]
    where: Final[list[str]]
    text: Final[str]
    count: Final[int]
    def __contains__(self, part: str) -> bool: ...

def note_kinds() -> dict[str, tuple[str, str]]: ...

class UncostedOp:
    op: Final[str]
    calls: Final[int]
    percent_of_time: Final[float | None]
    modules: Final[list[str]]
    module_count: Final[int]

class Coverage:
    uncosted: Final[dict[str, int]]
    uncosted_ops: Final[list[UncostedOp]]
    uncalled_modules: Final[list[str]]
    unattributed_kernels: Final[int]
    dropped_records: Final[int]
    unobserved: Final[dict[str, int]]
    notes: Final[list[Note]]

GAINS_OVERLAP: Final[str]  # what the head of a list of findings says

class Finding:
    """Something that wastes time, and what to do about it, by one rule of docs/findings.md."""

    id: Final[str]  # the same in every run: "depthwise-convolution/features.3/aten::conv2d"
    rule: Final[str]
    # path of the module with most of that time; of equal siblings their common name, "layers.0-79.mlp"
    module: Final[str]
    modules: Final[list[str]]  # all that the rule holds for, most time first
    op: Final[str | None]  # the one with most of that time; None: all of the module's
    ops: Final[list[str]]
    source: Final[str | None]  # the user's code, "FILE:LINE": of the forward around it, or of a compiled kernel
    bound: Final[str]
    text: Final[str]  # one sentence: what is wrong, and by how much
    action: Final[str]  # what to do
    gain_low: Final[float]  # seconds of the total's time that this saves
    gain_high: Final[float]
    basis: Final[str]  # what the gain is known from: "lower bound", "fused bound", "other precision's roof"
    confidence: Final[str]  # "high", "medium" or "low"
    because: Final[str]  # why so sure
    try_it: Final[str | None]  # code that tries it
    evidence: Final[dict[str, float]]  # figures that call for it
    reference: Final[str]  # where the rule is from

class Siblings:
    """Equal modules below one parent, which tables show as one line."""

    name: Final[str]  # such as "layers.0-79" or "layers.0-3, 5"
    paths: Final[list[str]]  # of all members; if their parent is folded too, of the members below each equal parent
    count: Final[int]  # the number of members below one parent
    # The mean of all members, then the modules below it, folded in the same way. Additive figures are those of one
    # member on average; rates and percentages are those of the members' sums.
    rows: Final[list[Row]]
    mean: Final[Row]  # the first of the rows
    spread: Final[float | None]  # (max - min) / median of the members' times
    slowest: Final[str | None]  # path of the slowest, if it stands out from the others
    slowest_ratio: Final[float | None]  # its time, as a multiple of the median

class FoldedRow:
    """A line of the tree of folded siblings. ``members`` are rows by index, ``count`` of these below one parent."""

    @property
    def mean(self) -> Row: ...
    @property
    def members(self) -> list[int]: ...
    @property
    def count(self) -> int: ...
    @property
    def parent(self) -> int:
        """The line of its parent, by index; -1: none."""

class MemoryMoment:
    """The most memory during equally many ops, in bytes above those that were there before."""

    first_op: Final[int]
    bytes: Final[int]
    module: Final[str]  # path of the row that allocated then
    phase: Final[str]
    is_peak: Final[bool]  # the most of all was during these ops

class StepStatistics:
    count: Final[int]
    mean: Final[float]
    median: Final[float]
    spread: Final[float]
    slowest: Final[float]
    slowest_index: Final[int]

class TokenPhase:
    """Calls of a language model that are prefill, or decode."""

    name: Final[str]
    calls: Final[int]
    sequences: Final[int]  # batch sizes, calls added up
    tokens: Final[int]  # new ones, of all sequences and calls
    least_context: Final[int | None]  # tokens of a sequence that a call attends to, cached and new
    most_context: Final[int | None]
    weight_bytes: Final[int]  # parameters of the model, tied ones once
    cache_bytes: Final[int]  # the most that the cache held when a call began
    macs: Final[int]
    flops: Final[int]
    bytes: Final[int]
    intensity: Final[float | None]
    flops_per_token: Final[float | None]
    time: Final[float | None]  # wall seconds of all calls
    tokens_per_second: Final[float | None]

class ClockOffset:
    """The time that must be added to a rank's clock to get the first rank's, and its largest error."""

    def __init__(self, offset_ns: int, error_ns: int) -> None: ...

class RankMerger:
    """Merges the reports of ranks; ``csrc/analysis/ranks/rank_merger.h`` says how."""

    def __init__(self) -> None: ...
    def add(
        self, report: Report, name: str, rank: int = -1, host: str = "", clock: ClockOffset | None = None
    ) -> int: ...
    def typical_ranks(self) -> list[int]: ...
    def keep(self, rank: int, json: str) -> None: ...
    def note_assumed(self, text: str) -> None: ...
    def expect(self, world_size: int) -> None: ...
    def finish(self) -> Report: ...

class Report:
    def __init__(self) -> None:
        """Make the report of a call that did nothing."""
    rows: Final[list[Row]]
    total: Final[Row]
    def row(self, path: str) -> Row: ...
    siblings: Final[list[Siblings]]
    findings: Final[list[Finding]]
    def group(self, keys: Iterable[str]) -> list[GroupRow]: ...
    regions: Final[list[Row]]
    def within(self, region: str) -> Report: ...
    within_region: Final[str]
    language_model: Final[list[TokenPhase]]
    flops_utilization: Final[tuple[float, float] | None]
    step_ns: Final[list[int]]
    step_statistics: Final[StepStatistics | None]
    kernels: Final[list[KernelRow]]
    memory_at_peak: Final[list[MemoryRow]]
    memory_timeline: Final[list[MemoryMoment]]
    why_no_kernels: Final[str]
    coverage: Final[Coverage]
    ceilings: Final[Ceilings]
    environment: Final[dict[str, str | int | float]]
    model: Final[str]
    device: Final[str]
    scope: Final[str]
    partial: Final[bool]
    collectives: Final[list[Collective]]
    ranks: Final[list[Rank]]
    missing_ranks: Final[list[int]]
    def report_of_rank(self, rank: int) -> Report: ...
    steps: Final[int | None]
    runs_ns: Final[list[int]]
    bare_ns: Final[list[int]]
    # Returns the run times of the total, and of each row; empty for a row without times.
    def row_run_times_ns(self) -> tuple[list[int], list[list[int]]]: ...
    def brief(self) -> str: ...
    def markdown(self, depth: int | None, sort: str, columns: list[str], by: str, limit: int) -> str: ...
    def table(
        self,
        depth: int | None,
        sort: str,
        columns: list[str],
        by: str,
        width: int,
        limit: int,
        legend: bool,
        for_shell: bool = False,
        expand: bool = False,
    ) -> str: ...
    def document(
        self,
        depth: int | None = None,
        sort: str = "",
        columns: list[str] = ...,
        by: str = "module",
        limit: int = 0,
        legend: bool = True,
        for_shell: bool = False,
        expand: bool = False,
    ) -> Document:
        """Return what `table` prints."""
    def part(self, part: str, by: str = "module") -> Document:
        """Return one part of it: "heading", "rows" (all of them), "legend", "roofs" or "coverage"."""
    def default_columns(self, by: str) -> list[str]: ...
    # Rows, whose modules may stand for equal siblings, and how many modules each is the sum of.
    def most_wasting(self) -> list[tuple[GroupRow, int]]: ...
    def marked_rows(self) -> list[int]: ...
    # By row: the index of its parent's row; -1: none.
    def parents(self) -> list[int]: ...
    @property
    def folded_rows(self) -> list[FoldedRow]: ...
    def to_json(self) -> str: ...
    def to_csv(self, by: str) -> str: ...

# Returns the events of a report's run; None if they were not kept. "host" and "device" are lists by column
# (csrc/core/event_members.h); "modules" is path, type and parent by id, "ops" shapes and dtype, "regions" are names.
def events_of(report: Report) -> dict[str, Any] | None: ...

# Returns a dict for each line: family ("own": the user's), op, formula, source, scalars (comma-separated), free.
def op_costs() -> list[dict[str, Any]]: ...
def counter_metrics() -> dict[str, list[str]]: ...
def counters_of(
    metrics: set[str],
) -> list[tuple[str, str, list[tuple[int, str]], list[tuple[str, bool]]]]: ...
def demangled(name: str) -> str: ...

# What is shown, as data: blocks that text, pages and notebooks render. Texts are printable.

class Heading:
    text: str

class Paragraph:
    @property
    def label(self) -> str:
        """What it is about; "" where it goes on with the paragraph before."""
    @property
    def text(self) -> str:
        """The whole text; of a list its items, joined by "; "."""
    items: list[str]
    @property
    def role(self) -> str:
        """Return "statement", "note", or "hint": how to see more, as the reader of a text would."""
    @property
    def apart(self) -> bool:
        """Whether an empty line stands before it."""

class TableColumn:
    """A column of a table. ``figure`` is the name of what it shows in the table of figures; "" where that is none.

    left: alignment; min_width: it may be cut down to that, 0: never; drop_rank: where the table is too wide, the column
    of the largest rank goes first, those of 0 stay.
    """

    def __init__(
        self, heading: str, left: bool = False, min_width: int = 0, drop_rank: int = 0, figure: str = ""
    ) -> None: ...
    heading: str
    left: bool
    figure: str

class Cell:
    """A cell: its text as shown, its value where that is a number, and its level in a tree.

    mark: what sort of value it is, which the text shows as well: ">=", "*"; or a word that pages colour by.
    """

    def __init__(self, text: str, value: float | None = None, mark: str = "", level: int = 0) -> None: ...
    text: str
    value: float | None
    mark: str
    level: int

class Table:
    @property
    def title(self) -> str:
        """What pages call it; text shows none."""
    columns: list[TableColumn]
    rows: list[list[Cell]]
    @property
    def marks(self) -> list[str]:
        """Return, for each row, "total", "" or a word that pages colour by."""
    @property
    def rules(self) -> list[int]:
        """The rows that a line stands before."""
    @property
    def remarks(self) -> list[str]:
        """What it leaves out, right below it."""

class Document:
    """Headings, paragraphs and tables, in their order."""

    blocks: list[Heading | Paragraph | Table]
    def add_heading(self, text: str) -> None: ...
    def add_paragraph(
        self, label: str, text: str = "", items: Sequence[str] = (), apart: bool = False, role: str = "statement"
    ) -> None: ...
    def add_table(
        self,
        columns: Sequence[TableColumn],
        rows: Sequence[Sequence[Cell | str]],
        rules: Sequence[int] = (),
        marks: Sequence[str] = (),
        remarks: Sequence[str] = (),
        title: str = "",
        if_dropped: str = "left out for the width: {}",
    ) -> None:
        """Add a table. A row has one cell for each column; rules: rows that a line stands before; marks: of each row.

        if_dropped: a remark where columns find no room; "{}" stands for their headings.
        """
    def text(self, width: int = 120) -> str:
        """Return the text, with empty lines around tables and headings. A width of 0: as wide as it takes."""

    def markdown(self) -> str: ...

def printable(text: str) -> str: ...
def printable_lines(text: str) -> str: ...

class PredictionOptions:
    """``roofprof/prediction.h`` says what each is."""

    def __init__(
        self,
        *,
        precision: str | None = None,
        batch: int | None = None,
        bandwidth: float = 1.0,
        peak: float = 1.0,
        autocast: bool = True,
        channels_last: bool = False,
        mode: str = "eager",
        host_seconds: float | None = None,
        ranks: int = 1,
        parallel: str = "ddp",
    ) -> None: ...

class PredictionParameters:
    """The numbers of the prediction, as data/prediction.json has them."""

    def __init__(self, text: str) -> None: ...
    @staticmethod
    def shipped() -> PredictionParameters: ...

class Predictor:
    """Predicts totals for many devices, or for many trials of the numbers; it reads the count once."""

    def __init__(self, report: Report, options: PredictionOptions) -> None: ...
    batch: Final[int | None]
    steps: Final[int]
    memory: Final[tuple[int, int | None]]  # bytes of the weights, and of activations at their peak
    words: Final[str]  # the options
    def op_classes(self) -> list[str]:
        """Return the class of each op, in the order of the report's ops; "" for views and what nothing is known of."""
    def op_seconds(self, ceilings: Ceilings, parameters: PredictionParameters) -> list[float]:
        """Return the seconds of each op's kernels, all its calls together, in the order of the report's ops."""
    def op_margins(self, ceilings: Ceilings, parameters: PredictionParameters) -> list[tuple[float, float]]:
        """Return both ends of the interval of each op's kernels, as factors on its seconds, in the order of the ops."""
    def class_seconds(self, ceilings: Ceilings, parameters: PredictionParameters) -> dict[str, float]: ...
    def total(self, ceilings: Ceilings, parameters: PredictionParameters) -> tuple[float, float, float, float]:
        """Return seconds, both ends of their interval, and the part of ops whose arithmetic takes the longer time."""

def predict_report(report: Report, ceilings: Ceilings, options: PredictionOptions) -> Report: ...
def collective_seconds(
    collective: str, size: float, ranks: int, ceilings: Ceilings, parameters: PredictionParameters
) -> float:
    """Return the seconds of an "all_reduce", ... of so many bytes, as nccl-tests defines a collective's size."""

def prediction_of(report: Report) -> str: ...
def adjusted_p_values(before: list[Sequence[int]], after: list[Sequence[int]], step_ns: int) -> list[float]: ...
def report_from_json(text: str | bytes) -> Report: ...
