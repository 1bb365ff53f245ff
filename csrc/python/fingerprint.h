#pragma once
// Whether anything changed that a model's tree tells: modules, their types, parameters and buffers, and their sizes.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

namespace roofprof::python {

// Of a module and all below it, by identities: reading it costs a fiftieth of the walk that makes the tree's facts.
// Modules are to be kept alive as long as it is compared: an address must not be given to another one. Tensors need
// not be: a new one at an old one's address is told apart where it differs in what the tree tells of it.
class Fingerprint {
 public:
  explicit Fingerprint(pybind11::handle module);

  // False also where not all could be read (TorchScript keeps its modules elsewhere).
  bool operator==(const Fingerprint& other) const { return complete_ && other.complete_ && words_ == other.words_; }

 private:
  void add(const void* identity) { words_.push_back(reinterpret_cast<std::uintptr_t>(identity)); }
  void add_module(PyObject* module);
  void add_children(PyObject* children);
  void add_tensors(PyObject* tensors);
  void add_tensor(PyObject* tensor);

  std::vector<std::uint64_t> words_;
  std::unordered_set<const void*> seen_;  // modules, while reading
  bool complete_ = true;
};

// Calls visit(value) for each entry of the module's own `_parameters`, None among them.
void for_each_own_parameter(PyObject* module, const std::function<void(PyObject*)>& visit);

}  // namespace roofprof::python
