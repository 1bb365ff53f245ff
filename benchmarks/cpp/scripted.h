#pragma once

#include <string>

namespace bench {

// Registers the benchmarks of a scripted resnet18 that was saved to that file (save_resnet18.py).
void add_scripted(const std::string& file);

}  // namespace bench
