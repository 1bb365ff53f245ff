#include "observe/regions.h"

#include <ATen/record_function.h>

#include <atomic>
#include <string>
#include <utility>

#include "observe/handed_over.h"
#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

struct RegionInfo : c10::DebugInfoBase {
  std::weak_ptr<Session> session;
  std::uint64_t pass = 0;
  RegionId region = kNoRegion;
  std::shared_ptr<RegionInfo> around;
  std::atomic<bool> left_behind{false};  // it ended, but torch still passes it on
};

namespace {

// This kind is the one of torch's own tests.
const auto kRegionsInfo = c10::DebugInfoKind::TEST_INFO;

}  // namespace

void check_name(std::string_view name) {
  if (name.size() <= kLongestName) return;
  throw InvalidArgument("roofprof: the name '" + std::string(name.substr(0, 20)) + "...' has " +
                        std::to_string(name.size()) + " bytes, and a region's or work's has at most " +
                        std::to_string(kLongestName) + ": shorten it");
}

void RegionHandover::begin(const std::shared_ptr<Session>& session, std::uint64_t pass, RegionId region) {
  auto info = std::make_shared<RegionInfo>();
  info->session = session;
  info->pass = pass;
  info->region = region;
  if (!open_.empty()) info->around = open_.back();
  open_.push_back(info);
  hand_over(kRegionsInfo, std::move(info));
}

void RegionHandover::end() {
  const auto info = std::move(open_.back());
  open_.pop_back();
  if (!end_handover(kRegionsInfo, info.get())) info->left_behind = true;
}

RegionId region_handed_over(const Session& session) {
  const auto* info = dynamic_cast<const RegionInfo*>(handed_over(kRegionsInfo));
  while (info != nullptr && info->left_behind) info = info->around.get();
  const bool known = info != nullptr && info->pass == session.pass() && info->session.lock().get() == &session;
  return known ? info->region : kNoRegion;
}

void open_region(std::string_view name, const void* token) {
  auto& state = thread_state();
  // An op that counts as a whole owns what runs inside, so a region there would get no work.
  if (!state.is_observed() || state.in_owned_work()) return;
  auto& regions = state.session->regions;
  const auto row = regions.find_or_add(state.now().module, name);
  const auto path = regions.find_or_add_path(state.region, name);
  if (row || path != state.region) state.open_region(row, path, token);
}

bool name_call(const Session& session, const void* module, std::string_view name) {
  auto& state = thread_state();
  if (!state.is_observed() || state.session.get() != &session || state.in_owned_work()) return false;
  const auto& call = state.frames.back();
  if (call.kind != FrameKind::module || call.token != module || call.opens_region) return false;
  const auto path = state.session->regions.find_or_add_path(state.region, name);
  if (path != state.region) state.name_call(path);
  return true;
}

bool is_region_open(std::string_view name) {
  const auto& state = thread_state();
  return state.is_observed() && state.session->regions.is_open(state.region, name);
}

void close_region(const void* token) {
  auto& state = thread_state();
  if (!state.frames.empty()) state.close(token);
}

void open_region(const at::RecordFunction& range) {
  const std::string_view name = range.name();
  if (const auto region = region_of_range(name); !region.empty()) open_region(region, &range);
}

}  // namespace roofprof::observe
