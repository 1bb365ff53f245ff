#pragma once
// Costs of your own operators:
//
//   roofprof::OpCosts::add("mylib::op", [](const roofprof::OpCall& call, roofprof::Work& work) {
//     work.add_macs(call.tensor("x").numel() * 9, call.compute_dtype());
//   });

#include <functional>
#include <string>

#include "roofprof/error.h"
#include "roofprof/op_call.h"
#include "roofprof/work.h"

namespace roofprof {

using ops::OpCall;
using ops::TensorDesc;

class OpCosts {
 public:
  // Adds the MACs and operations of one call to `work`, which comes with the call's compulsory bytes (each distinct
  // input once, each result once); they may be overwritten. All scalar arguments of the call can be read. Runs once per
  // operator, module and shapes, on the thread that called the operator and possibly on several at a time. If it
  // throws, a note in the report says so, and the op is listed as uncosted.
  using Function = std::function<void(const OpCall& call, Work& work)>;

  // Sets the cost of an operator: "mylib::op" for all its overloads, "mylib::op.overload" for one ("mylib::op.default"
  // for the one without a name). It replaces an earlier one, roofprof's own as well, and counts from the next call on;
  // the operator may come to exist later. `formula` says in words what is counted, for listings.
  // Throws InvalidArgument for a name without "::" and for an empty function.
  static void add(const std::string& op, Function function, std::string formula = "");
  // Removes the cost that add() set for exactly that name, so that roofprof's cost counts again. Without one: no
  // effect.
  static void remove(const std::string& op);
};

}  // namespace roofprof
