#pragma once
// Work that the user declares: it counts as one call of an operator that torch does not have.

#include <string_view>

#include "roofprof/work.h"

namespace roofprof::observe {

// Counts one call of the work, without time. False if the calling thread is not observed, or runs an op that counts as
// a whole.
bool declare_work(std::string_view name, const Work& work);
// Begins declared work. Ops on this thread until close_work(token) belong to it and are not counted; the time in
// between is added to it.
void open_work(std::string_view name, const Work& work, const void* token);
void close_work(const void* token);

}  // namespace roofprof::observe
