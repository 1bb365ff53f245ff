#pragma once
// The members of roofs (core/members.h).

#include "core/member_list.h"
#include "roofprof/ceilings.h"

namespace roofprof {

template <class Visitor>
void for_each_member(Of<Provenance>, Visitor&& visit) {
  visit("source", &Provenance::source, Written::always);
  visit("method", &Provenance::method, Written::always);
  visit("date", &Provenance::date, Written::always);
  visit("spread", &Provenance::spread, Written::always);
}

template <class Visitor>
void for_each_member(Of<SustainedRate>, Visitor&& visit) {
  visit("operations_per_second", &SustainedRate::operations_per_second, Written::always);
  visit("seconds", &SustainedRate::seconds, Written::always);
  visit("clock_hz", &SustainedRate::clock_hz, Written::unless_default);
  visit("power_watts", &SustainedRate::power_watts, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<FastestWork>, Visitor&& visit) {
  visit("shape", &FastestWork::shape, Written::always);
  visit("kernel_name", &FastestWork::kernel_name, Written::unless_default);
  visit("missing", &FastestWork::missing, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<ComputeCeiling>, Visitor&& visit) {
  visit("dtype", &ComputeCeiling::dtype, Written::always);
  visit("operations_per_second", &ComputeCeiling::operations_per_second, Written::always);
  visit("provenance", &ComputeCeiling::provenance, Written::always);
  visit("sustained", &ComputeCeiling::sustained, Written::unless_default);
  visit("fastest", &ComputeCeiling::fastest, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<MemoryCeiling>, Visitor&& visit) {
  visit("level", &MemoryCeiling::level, Written::always);
  visit("bytes_per_second", &MemoryCeiling::bytes_per_second, Written::always);
  visit("capacity_bytes", &MemoryCeiling::capacity_bytes, Written::always);
  visit("provenance", &MemoryCeiling::provenance, Written::always);
  visit("counted_bytes_per_second", &MemoryCeiling::counted_bytes_per_second, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<BandwidthPoint>, Visitor&& visit) {
  visit("working_set_bytes", &BandwidthPoint::working_set_bytes, Written::always);
  visit("read", &BandwidthPoint::read, Written::always);
  visit("triad", &BandwidthPoint::triad, Written::always);
  visit("copy", &BandwidthPoint::copy, Written::always);
  visit("write", &BandwidthPoint::write, Written::always);
  visit("update", &BandwidthPoint::update, Written::always);
  visit("spread", &BandwidthPoint::spread, Written::always);
}

template <class Visitor>
void for_each_member(Of<BandwidthCurve>, Visitor&& visit) {
  visit("points", &BandwidthCurve::points, Written::always);
  visit("provenance", &BandwidthCurve::provenance, Written::always);
}

template <class Visitor>
void for_each_member(Of<NetworkCeiling>, Visitor&& visit) {
  visit("collective", &NetworkCeiling::collective, Written::always);
  visit("backend", &NetworkCeiling::backend, Written::always);
  visit("ranks", &NetworkCeiling::ranks, Written::always);
  visit("latency_ns", &NetworkCeiling::latency_ns, Written::always);
  visit("bytes_per_second", &NetworkCeiling::bytes_per_second, Written::always);
  visit("provenance", &NetworkCeiling::provenance, Written::always);
}

template <class Visitor>
void for_each_member(Of<CardFacts>, Visitor&& visit) {
  visit("compute_capability", &CardFacts::compute_capability, Written::unless_default);
  visit("multiprocessors", &CardFacts::multiprocessors, Written::unless_default);
  visit("l2_bytes", &CardFacts::l2_bytes, Written::unless_default);
  visit("memory_bytes", &CardFacts::memory_bytes, Written::unless_default);
  visit("tdp_watts", &CardFacts::tdp_watts, Written::unless_default);
  visit("link", &CardFacts::link, Written::unless_default);
  visit("link_bytes_per_second", &CardFacts::link_bytes_per_second, Written::unless_default);
  visit("inline_ecc", &CardFacts::inline_ecc, Written::unless_default);
}

template <class Visitor>
void for_each_member(Of<CalibratedNumber>, Visitor&& visit) {
  visit("name", &CalibratedNumber::name, Written::always);
  visit("value", &CalibratedNumber::value, Written::always);
}

template <class Visitor>
void for_each_member(Of<CalibratedClass>, Visitor&& visit) {
  visit("name", &CalibratedClass::name, Written::always);
  visit("kernels", &CalibratedClass::kernels, Written::always);
  visit("median_error", &CalibratedClass::median_error, Written::always);
  visit("percentile_90", &CalibratedClass::percentile_90, Written::always);
  visit("median_error_before", &CalibratedClass::median_error_before, Written::always);
}

template <class Visitor>
void for_each_member(Of<Calibration>, Visitor&& visit) {
  visit("source", &Calibration::source, Written::always);
  visit("numbers", &Calibration::numbers, Written::always);
  visit("classes", &Calibration::classes, Written::always);
}

template <class Visitor>
void for_each_member(Of<Ceilings>, Visitor&& visit) {
  visit("device", &Ceilings::device, Written::always);
  visit("compute", &Ceilings::compute, Written::always);
  visit("memory", &Ceilings::memory, Written::always);
  visit("curve", &Ceilings::curve, Written::unless_default);
  visit("network", &Ceilings::network, Written::unless_default);
  visit("facts", &Ceilings::facts, Written::unless_default);
  visit("calibration", &Ceilings::calibration, Written::unless_default);
  visit("busy_share", &Ceilings::busy_share, Written::unless_default);
}

}  // namespace roofprof
