#include "bindings.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "The compiled part of roofprof. Use the roofprof package; names in here may change.";
  roofprof::python::bind_ceilings(module);
  roofprof::python::bind_rows(module);
  roofprof::python::bind_notes(module);
  roofprof::python::bind_report(module);
  roofprof::python::bind_events(module);
  roofprof::python::bind_text(module);
  roofprof::python::bind_prediction(module);
  roofprof::python::bind_ops(module);
  roofprof::python::bind_session(module);
  roofprof::python::bind_run(module);
  roofprof::python::bind_state(module);
  roofprof::python::bind_costs(module);
  roofprof::python::bind_scopes(module);
  roofprof::python::bind_scripts(module);
  roofprof::python::bind_doctor(module);
  roofprof::python::bind_host(module);
  roofprof::python::bind_import(module);
  roofprof::python::bind_size_hints();
}
