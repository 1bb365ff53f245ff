#pragma once
// The members of what is derived from observed data and written in the same form, for every other reader.

#include "core/member_list.h"
#include "core/profile_data.h"

namespace roofprof {

template <class Visitor>
void for_each_member(Of<StepStatistics>, Visitor&& visit) {
  visit("count", &StepStatistics::count, Written::always);
  visit("mean_ns", &StepStatistics::mean_ns, Written::always);
  visit("median_ns", &StepStatistics::median_ns, Written::always);
  visit("spread", &StepStatistics::spread, Written::always);
  visit("slowest_ns", &StepStatistics::slowest_ns, Written::always);
  visit("slowest_index", &StepStatistics::slowest_index, Written::always);
}

template <class Visitor>
void for_each_member(Of<TokenPhase>, Visitor&& visit) {
  visit("name", &TokenPhase::name, Written::always);
  visit("calls", &TokenPhase::calls, Written::always);
  visit("sequences", &TokenPhase::sequences, Written::always);
  visit("tokens", &TokenPhase::tokens, Written::always);
  visit("least_context", &TokenPhase::least_context, Written::always);
  visit("most_context", &TokenPhase::most_context, Written::always);
  visit("weight_bytes", &TokenPhase::weight_bytes, Written::always);
  visit("cache_bytes", &TokenPhase::cache_bytes, Written::always);
  visit("macs", &TokenPhase::macs, Written::always);
  visit("flops", &TokenPhase::flops, Written::always);
  visit("bytes", &TokenPhase::bytes, Written::always);
  visit("intensity", &TokenPhase::intensity, Written::always);
  visit("flops_per_token", &TokenPhase::flops_per_token, Written::always);
  visit("time_ns", &TokenPhase::time_ns, Written::always);
  visit("tokens_per_second", &TokenPhase::tokens_per_second, Written::always);
}

template <class Visitor>
void for_each_member(Of<FlopsUtilization>, Visitor&& visit) {
  visit("mfu", &FlopsUtilization::mfu, Written::always);
  visit("hfu", &FlopsUtilization::hfu, Written::always);
  visit("time_ns", &FlopsUtilization::time_ns, Written::always);
  visit("time_of", &FlopsUtilization::time_of, Written::always);
}

template <class Visitor>
void for_each_member(Of<Finding>, Visitor&& visit) {
  visit("id", &Finding::id, Written::always);
  visit("rule", &Finding::rule, Written::always);
  visit("module", &Finding::module, Written::always);
  visit("modules", &Finding::modules, Written::always);
  visit("op", &Finding::op, Written::always);
  visit("ops", &Finding::ops, Written::always);
  visit("source", &Finding::source, Written::always);
  visit("bound", &Finding::bound, Written::always);
  visit("text", &Finding::text, Written::always);
  visit("action", &Finding::action, Written::always);
  visit("gain_low_ns", &Finding::gain_low_ns, Written::always);
  visit("gain_high_ns", &Finding::gain_high_ns, Written::always);
  visit("basis", &Finding::basis, Written::always);
  visit("confidence", &Finding::confidence, Written::always);
  visit("because", &Finding::because, Written::always);
  visit("try_it", &Finding::try_it, Written::always);
  visit("evidence", &Finding::evidence, Written::always);
  visit("reference", &Finding::reference, Written::always);
}

template <class Visitor>
void for_each_member(Of<UncostedOp>, Visitor&& visit) {
  visit("op", &UncostedOp::op, Written::always);
  visit("calls", &UncostedOp::calls, Written::always);
  visit("percent_of_time", &UncostedOp::percent_of_time, Written::always);
  visit("modules", &UncostedOp::modules, Written::always);
  visit("module_count", &UncostedOp::module_count, Written::always);
}

template <class Visitor>
void for_each_member(Of<Coverage>, Visitor&& visit) {
  visit("uncosted", &Coverage::uncosted, Written::always);
  visit("uncosted_ops", &Coverage::uncosted_ops, Written::always);
  visit("uncalled_modules", &Coverage::uncalled_modules, Written::always);
  visit("unattributed_kernels", &Coverage::unattributed_kernels, Written::always);
  visit("dropped_records", &Coverage::dropped_records, Written::always);
  visit("unobserved", &Coverage::unobserved, Written::always);
  visit("notes", &Coverage::notes, Written::always);
}

}  // namespace roofprof
