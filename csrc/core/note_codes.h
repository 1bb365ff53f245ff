#pragma once
// The codes of notes, each with its level and meaning: docs/notes.md is this list. A code is never renamed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "roofprof/error.h"
#include "roofprof/note.h"

namespace roofprof {

inline constexpr std::array<std::string_view, 3> kNoteLevelNames = {"info", "warning", "attention"};
constexpr std::string_view name_of(NoteLevel level) { return kNoteLevelNames[static_cast<std::size_t>(level)]; }

// The subject of a note: the counts, or how a run was timed or predicted. The latter says nothing about another
// device's times.
enum class NoteOf : std::uint8_t { counts, times };

struct NoteKind {
  std::string_view code;
  NoteLevel level;
  std::string_view meaning;
  NoteOf of = NoteOf::counts;
};

inline constexpr auto kNoteKinds = std::to_array<NoteKind>({
    // The run
    {"partial", NoteLevel::warning, "An exception ended the run or block; only what ran before is counted."},
    {"timing-stopped", NoteLevel::warning,
     "A further call raised, did other work, lost the device or came after the time limit; fewer are timed.",
     NoteOf::times},
    {"fixed-calls", NoteLevel::info,
     "Ranks may wait for each other in the calls, so their number is fixed and no time ends them."},
    {"timed-once", NoteLevel::warning,
     "The counting call alone is timed: its arguments cannot be used twice, or it freed memory.", NoteOf::times},
    {"not-timed", NoteLevel::warning, "Calls on this device cannot be timed.", NoteOf::times},
    {"state-not-restored", NoteLevel::warning, "Further calls changed tensors that could not be put back."},
    {"counted-with-fakes", NoteLevel::info, "The call was counted with fake tensors on the CPU."},
    {"inputs-taken-as-fakes", NoteLevel::info, "Inputs that hold data were taken as fake tensors."},
    {"roofs-doubtful", NoteLevel::warning, "What looked odd when the roofs were measured, or why they were not.",
     NoteOf::times},
    {"roofs-busy", NoteLevel::attention,
     "Other work used the processors while the roofs were measured: they may be too low, and are not kept.",
     NoteOf::times},
    {"machine-busy", NoteLevel::attention, "Other work used the processors while the calls were timed.", NoteOf::times},
    {"rank-not-known", NoteLevel::warning,
     "RANK and WORLD_SIZE of the environment do not name a rank: the report has none."},
    {"ranks-missing", NoteLevel::attention, "Reports of some ranks did not come: sums are of the others."},
    {"ranks-assumed", NoteLevel::warning, "Traces do not say their ranks: these are from their files' names or order."},
    {"ranks-differ", NoteLevel::warning, "Something that should be the same on all ranks is not: model, torch, steps."},
    {"ranks-roofs", NoteLevel::info,
     "Ranks have roofs of their own: whose are used and how far the others are, or why none.", NoteOf::times},
    {"ranks-clocks", NoteLevel::info,
     "How well the clocks of several hosts are aligned, or that waits between them are not known."},
    {"collectives-untimed", NoteLevel::warning, "Some calls of collectives have no times: the text says why.",
     NoteOf::times},
    {"first-call", NoteLevel::info,
     "The first call did other work than those after it; counts and times are those of the later ones.", NoteOf::times},
    {"threads-overlap", NoteLevel::info,
     "Several threads ran the model at once: times are added up per thread, the total is judged by wall time.",
     NoteOf::times},
    {"other-calls", NoteLevel::warning, "Others called the model while it ran: their calls are left out.",
     NoteOf::times},
    {"calls-under-way", NoteLevel::warning,
     "Other threads were inside of modules when the block or call ended: a part of their calls' work is not counted."},
    {"calls-unclear", NoteLevel::warning,
     "Modules ran on threads that may have worked for others' calls of the model: the text says if they count."},
    {"events-left-out", NoteLevel::warning, "Traces do not have all that ran: what is missing, and why.",
     NoteOf::times},
    {"no-memory", NoteLevel::info, "Peak and kept memory are not known, and why."},
    {"memory-by-sizes", NoteLevel::info,
     "Peak and kept memory are the sizes of tensors: the device's allocator is not listened to."},
    {"predicted", NoteLevel::info, "Times are predicted for another device; none was measured.", NoteOf::times},
    {"prediction-memory", NoteLevel::attention, "On the device that was predicted for, the model does not fit.",
     NoteOf::times},
    {"prediction-doubtful", NoteLevel::warning, "Times of some ops are predicted without what matters most for them.",
     NoteOf::times},
    {"prediction-peaks", NoteLevel::info, "What was taken in place of a peak that is not published.", NoteOf::times},
    {"prediction-ranks", NoteLevel::info, "What the ranks of a prediction do, and what is assumed of them.",
     NoteOf::times},
    {"loss", NoteLevel::info, "Which loss a training step went back from."},
    {"window-phase", NoteLevel::info, "Which calls of the program `roofprof run` profiled: of training or evaluation."},
    {"between-steps", NoteLevel::info,
     "Modules that ran between the steps of training, or in them without a backward: where their work is."},
    // Reports of traces
    {"launched-before", NoteLevel::warning,
     "Kernels were launched before a trace began: they are in no row, and how long they took."},
    {"graph-captures", NoteLevel::info,
     "Kernels of a graph's replays have the operators that were recorded when it was captured: of which file."},
    {"graph-replays", NoteLevel::warning,
     "Kernels of a graph's replays whose operators are not known: how many, their time, and why a capture was not "
     "taken."},
    {"trace-lacks", NoteLevel::warning,
     "A trace was recorded without something that figures need: the text names the option."},
    {"steps-differ", NoteLevel::warning,
     "The steps that a mean is of did different work: counts of what some of them did are rounded down."},
    {"model-not-aligned", NoteLevel::warning,
     "The calls in a trace are not those of the model: rows are named by class and number."},
    {"roofs-of-another", NoteLevel::warning,
     "The given roofs are those of another device than the one that the trace was recorded on."},
    {"whole-context", NoteLevel::info,
     "Attention counts the whole context that a serving engine's annotation gives; a sliding window is not known."},
    // Operators and modules
    {"lower-limits", NoteLevel::warning,
     "Of some operators only a part of the work is known: their rows and all sums with them are lower limits (`>=`)."},
    {"cost-failed", NoteLevel::warning, "The cost of an operator is known, but not for this call: it is not counted."},
    {"cost-unused", NoteLevel::warning, "A cost was given for an operator that is not there."},
    {"count-saturated", NoteLevel::warning, "A count reached the largest 64-bit integer: it is a lower limit."},
    {"calls-not-seen", NoteLevel::attention, "Calls of torch::nn modules are not seen: rows are inferred."},
    {"ops-on-other-threads", NoteLevel::warning, "Operators ran on threads that no module called: not counted."},
    {"forward-not-known", NoteLevel::warning, "Backward work without a known forward is counted in (outside)."},
    {"place-not-known", NoteLevel::warning,
     "A module stands at several paths, and it is not known at which of them it was called."},
    {"deferred-work", NoteLevel::warning,
     "A forward returned a generator, a coroutine or a future: its work is counted where it is done."},
    {"modules-added", NoteLevel::warning, "Modules that were added while the model ran have no rows."},
    {"params-not-known", NoteLevel::warning,
     "Weights are packed, and nothing tells how many: the modules that hold them have no figures of parameters."},
    {"forward-not-called", NoteLevel::info,
     "Other methods of a module ran, but not its forward: its row has no calls."},
    {"weights-used-elsewhere", NoteLevel::info,
     "No call of a module was seen, but its parameters were used: that work is in other rows."},
    {"regions-refused", NoteLevel::warning, "There were more regions than get rows."},
    {"within-region", NoteLevel::info, "The report is of what ran within one region alone."},
    // Compiled models and TorchScript
    {"compiled", NoteLevel::info, "Counts are those of the eager model, times those of the compiled one."},
    {"compiled-again", NoteLevel::info,
     "Compiled code was compiled again to tell or time its kernels, which is in no time.", NoteOf::times},
    {"compiled-kernels", NoteLevel::info,
     "What is known of kernels of compiled code, and how much of the time they took.", NoteOf::times},
    {"kernels-doubtful", NoteLevel::warning,
     "From run to run other kernels of compiled code took the time, or these runs took another time than the others.",
     NoteOf::times},
    {"no-kernels", NoteLevel::warning, "Nothing is known of the kernels of compiled code.", NoteOf::times},
    {"graph-breaks", NoteLevel::info, "torch.compile broke the program into several graphs."},
    {"compiled-not-counted", NoteLevel::warning, "The work inside of a compiled region is not counted."},
    {"compiled-meanwhile", NoteLevel::info, "torch.compile compiled while the model was profiled."},
    {"traced-meanwhile", NoteLevel::info, "Operators computed shapes or traced code: the call's work leaves them out."},
    {"script-not-copied", NoteLevel::warning,
     "TorchScript code could not be copied: its modules' calls are not known."},
    {"script-frozen", NoteLevel::warning, "Freezing removed a TorchScript model's modules and parameters."},
    {"script-differentiated", NoteLevel::info, "TorchScript differentiated several modules as one."},
    {"script-other-ops", NoteLevel::info, "TorchScript's executor ran other operators than were counted."},
    // Roofs and figures
    {"above-roof", NoteLevel::warning, "Something was faster than its roof allows: the roof is too low."},
    {"no-roof", NoteLevel::warning, "A roof is missing: some rows have no lower bound."},
    {"off-device", NoteLevel::info,
     "Ops launched nothing on the device: they ran on the host, or were captured into a graph. No roof holds them."},
    {"reuse-not-known", NoteLevel::info,
     "Memory roofs stand at the footprints of ops: when their memory was last touched is not known."},
    {"traffic-sampled", NoteLevel::info,
     "Reuse distances and the bytes that cross modules' boundaries are estimates: they were logged in some calls."},
    {"fused-not-known", NoteLevel::info,
     "The counted call of the model lacks ops of the trace: how many bytes, and whether there is a fused bound."},
    {"roof-by-bytes-alone", NoteLevel::info, "A compute roof is missing that only elementwise operators would need."},
    {"older-kernels", NoteLevel::info, "Kernels built for an older GPU than this one took a good part of the time."},
    // Devices
    {"tensor-float", NoteLevel::info, "Products of fp32 ran in TF32, as their kernels' names say."},
    {"simulated-device", NoteLevel::attention, "No GPU ran: its figures come from simulated libraries."},
    {"idle-without-observing", NoteLevel::info,
     "What observing adds to a launch was measured and taken off the device's idle time: how much."},
    {"idle-as-seen", NoteLevel::info, "The device's idle time is as recorded: the cost of observing is in it."},
    {"order-differs", NoteLevel::info,
     "Calls that were traced alone launched in another order than the observed one: times are those of observed "
     "calls."},
    {"replayed", NoteLevel::info, "What the device did was read from a file of recorded data."},
    {"not-recorded", NoteLevel::warning, "What the device did could not be written to the file asked for."},
    {"device-lost", NoteLevel::warning, "The device failed; what was recorded before is kept."},
    {"no-kernel-times", NoteLevel::warning, "Neither kernel times nor counters could be had; times are the clock's."},
    {"kernels-missing", NoteLevel::warning, "Records of kernels or copies were lost: their times are lower limits."},
    {"launches-misplaced", NoteLevel::warning, "Some kernels may be counted outside of the module that launched them."},
    {"other-profiler", NoteLevel::warning, "Another profiler was at work: kernels may be missing."},
    {"cupti-shared", NoteLevel::info,
     "Another client holds CUPTI's callbacks: captures of CUDA graphs were not watched."},
    {"graph-launches", NoteLevel::info, "CUDA graphs were launched: which modules their kernels are counted in."},
    {"cupti-failed", NoteLevel::warning, "CUPTI refused something at the end of a trace."},
    // Hardware counters
    {"no-counters", NoteLevel::warning, "No counters were read."},
    {"counter-not-measured", NoteLevel::warning, "Some counters were not read."},
    {"counters-mismatched", NoteLevel::warning, "Counters could not be given to kernels or modules."},
    {"counters-not-evaluated", NoteLevel::warning, "CUPTI could not compute the values of some ranges."},
    {"counters-in-rounds", NoteLevel::info, "CUPTI took fewer ranges at a time than were needed: how many, how often."},
    {"counters-of-one-device", NoteLevel::warning, "Counters were read on one device, others were in use too."},
    {"counters-between-threads", NoteLevel::warning,
     "Several threads were in modules at once: counters cannot tell them apart."},
    {"counter-access-not-known", NoteLevel::info, "Which counters this system allows could not be asked."},
    {"ncu-matched", NoteLevel::info, "Which launches have the counters that ncu read, and how they were found."},
    {"ncu-not-matched", NoteLevel::warning, "Launches of a trace that ncu did not count: they have no counters."},
    {"ncu-lacks", NoteLevel::warning, "Rows or values of ncu's table could not be read."},
    {"ncu-times", NoteLevel::info, "Times are those of ncu's runs, kernel by kernel."},
    {"copies-not-counted", NoteLevel::info,
     "Counters are read for kernels: bytes of copies and fills are not in them."},
});

// Returns the code's index in the list; the list's length where the list lacks it.
constexpr std::size_t index_of_note(std::string_view code) {
  std::size_t index = 0;
  while (index < kNoteKinds.size() && kNoteKinds[index].code != code) ++index;
  return index;
}

constexpr bool is_of_times(std::string_view code) {
  const auto index = index_of_note(code);
  return index < kNoteKinds.size() && kNoteKinds[index].of == NoteOf::times;
}

// A code of the list, looked up while compiling: any other text is an error there.
class NoteCode {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a literal where a code is wanted
  consteval NoteCode(const char* code) : index_(index_of_note(code)) {
    if (index_ == kNoteKinds.size()) throw InvalidArgument("there is no such code of notes");
  }
  const NoteKind& kind() const { return kNoteKinds[index_]; }

 private:
  std::size_t index_;  // no pointer: gcc's sanitizers make the comparison of one with null no constant
};

inline Note make_note(const NoteKind& kind, std::string text, std::vector<std::string> where = {}) {
  return {kind.level, std::string(kind.code), std::move(where), std::move(text)};
}

inline Note make_note(NoteCode code, std::string text, std::vector<std::string> where = {}) {
  return make_note(code.kind(), std::move(text), std::move(where));
}

// Returns the first note with that code; null where there is none.
const Note* find_note(const std::vector<Note>& notes, NoteCode code);

// Notes with the same code and text become one, with the number of them and all that they name.
void add_note(std::vector<Note>& notes, Note note);
void add_notes(std::vector<Note>& notes, const std::vector<Note>& more);

inline void add_note(std::vector<Note>& notes, NoteCode code, std::string text, std::vector<std::string> where = {}) {
  add_note(notes, make_note(code, std::move(text), std::move(where)));
}

}  // namespace roofprof
