#pragma once
// Detects changes in a model's tree: modules, their types, parameters and buffers, and their sizes.

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

namespace roofprof::python {

// Identifies a module and all below it: reading it costs a fiftieth of the walk that collects the tree's facts. The
// caller must keep the modules alive as long as it compares: an address must not be given to another one. Tensors may
// die: a new tensor at an old one's address is noticed where it differs in the facts of the tree.
class Fingerprint {
 public:
  explicit Fingerprint(pybind11::handle module);

  // Returns false also where not all could be read (TorchScript keeps its modules elsewhere).
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

// Call visit(value) for each entry of the module's own `_parameters` or `_buffers`, None among them.
void for_each_own_parameter(PyObject* module, const std::function<void(PyObject*)>& visit);
void for_each_own_buffer(PyObject* module, const std::function<void(PyObject*)>& visit);

}  // namespace roofprof::python
