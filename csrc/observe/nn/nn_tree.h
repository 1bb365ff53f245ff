#pragma once
// The tree of a torch::nn model.

#include <string>
#include <string_view>

#include "observe/modules/model_tree.h"

namespace torch::nn {
class Module;
}

namespace roofprof::observe {

// Returns the model's tree. A module at several places has a row at each, and its parameters count once in every
// subtree.
ModelTree tree_of(const torch::nn::Module& model);

// Returns whether the module only holds other modules or parameters. Such a module does no work itself, and if it has
// calls, they are not seen (Sequential's forward is compiled into the program).
bool is_container(const torch::nn::Module& module);

// Returns the name that people and Python use: "torch::nn::Conv2dImpl" is "Conv2d".
std::string type_name(std::string_view qualified);

}  // namespace roofprof::observe
