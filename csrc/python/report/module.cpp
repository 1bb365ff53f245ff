#include "python/report/bindings.h"

PYBIND11_MODULE(_report, module) {
  module.doc() =
      "The compiled part of roofprof that needs no torch. Use the roofprof package; names in here may change.";
  roofprof::python::bind_ceilings(module);
  roofprof::python::bind_rows(module);
  roofprof::python::bind_notes(module);
  roofprof::python::bind_report(module);
  roofprof::python::bind_events(module);
  roofprof::python::bind_text(module);
  roofprof::python::bind_prediction(module);
  roofprof::python::bind_comparison(module);
  roofprof::python::bind_ops(module);
}
