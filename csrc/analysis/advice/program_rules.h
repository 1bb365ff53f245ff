#pragma once
// Rules about the program around the layers: devices that wait, code between ops, communication, data, the optimizer,
// casts.

#include <optional>
#include <string>

#include "analysis/advice/advice_rules.h"

namespace roofprof::rules {

std::optional<AdviceReason> built_for_older(const AdviceCase& where);
std::string say_built_for_older(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> device_waits(const AdviceCase& where);
std::string say_device_waits(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> exposed_communication(const AdviceCase& where);
std::string say_exposed_communication(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> data_loading(const AdviceCase& where);
std::string say_data_loading(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> optimizer_op_by_op(const AdviceCase& where);
std::string say_optimizer_op_by_op(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> outside_ops(const AdviceCase& where);
std::string say_outside_ops(const AdviceCase& where, const NamedFigures& figures);

std::optional<AdviceReason> casts(const AdviceCase& where);
std::string say_casts(const AdviceCase& where, const NamedFigures& figures);

}  // namespace roofprof::rules
