#pragma once
// Rules about ops whose own code takes the time, since they are far from every roof.

#include <optional>
#include <string>

#include "analysis/advice/advice_rules.h"

namespace roofprof::rules {

std::optional<AdviceReason> attention_op_by_op(const AdviceCase& where);
std::string say_attention_op_by_op(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> slow_max_pooling(const AdviceCase& where);
std::string say_slow_max_pooling(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> channels_first(const AdviceCase& where);
std::string say_channels_first(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> far_from_roof(const AdviceCase& where);
std::string say_far_from_roof(const AdviceCase& where, const NamedFigures& figures);

}  // namespace roofprof::rules
