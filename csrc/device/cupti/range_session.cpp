#include "device/cupti/range_session.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "core/phrases.h"

namespace roofprof::cupti {

namespace {

// Why a device is not supported, by its flags.
std::string reason_of(const CUpti_Profiler_DeviceSupported_Params& answer) {
  const std::array<std::pair<CUpti_Profiler_Support_Level, std::string_view>, 6> flags = {{
      {answer.architecture, "its architecture (compute capability 7.5 or newer is needed)"},
      {answer.sli, "SLI"},
      {answer.vGpu, "that it is a virtual GPU"},
      {answer.confidentialCompute, "confidential computing"},
      {answer.cmp, "that it is a mining processor (CMP)"},
      {answer.wsl, "Windows' Linux (WSL)"},
  }};
  std::string found;
  for (const auto& [level, words] : flags) {
    if (level != CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED && level != CUPTI_PROFILER_CONFIGURATION_DISABLED) continue;
    add_item(found, words);
    if (level == CUPTI_PROFILER_CONFIGURATION_DISABLED) found += " (switched off by the system)";
  }
  return found.empty() ? "something that CUPTI does not name" : found;
}

// Fewer are not tried: it is not their number that CUPTI refuses.
constexpr std::size_t kFewestRooms = 16;
// Images hold some kilobytes for each range; larger ones would take the memory of the model.
constexpr std::size_t kLargestImage = std::size_t{1} << 29;

bool is_about_numbers(const CuptiError& error) {
  return error.code() == CUPTI_ERROR_INVALID_OPERATION || error.code() == CUPTI_ERROR_OUT_OF_MEMORY;
}

std::size_t fewer(std::size_t rooms, std::size_t needed) { return rooms > needed ? needed : rooms / 2; }

}  // namespace

ProfilerLibrary::ProfilerLibrary(const Api& api) : api_(api) {
  auto request = params<CUpti_Profiler_Initialize_Params>();
  ROOFPROF_CUPTI(api_, cuptiProfilerInitialize, &request);
}

ProfilerLibrary::~ProfilerLibrary() {
  auto request = params<CUpti_Profiler_DeInitialize_Params>();
  api_.cuptiProfilerDeInitialize(&request);
}

void check_supported(const Api& api, CUdevice device) {
  auto request = params<CUpti_Profiler_DeviceSupported_Params>();
  request.cuDevice = device;
  request.api = CUPTI_PROFILER_RANGE_PROFILING;
  ROOFPROF_CUPTI(api, cuptiProfilerDeviceSupported, &request);
  if (request.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return;
  throw CollectorError("CUPTI cannot read this GPU's counters; the reason is " + reason_of(request),
                       "kernel times work without them: counters=\"off\"");
}

std::string chip_name(const Api& api, std::size_t device_index) {
  auto request = params<CUpti_Device_GetChipName_Params>();
  request.deviceIndex = device_index;
  ROOFPROF_CUPTI(api, cuptiDeviceGetChipName, &request);
  return request.pChipName;
}

std::vector<std::uint8_t> counter_availability(const Api& api, CUcontext context) {
  auto request = params<CUpti_Profiler_GetCounterAvailability_Params>();
  request.ctx = context;
  ROOFPROF_CUPTI(api, cuptiProfilerGetCounterAvailability, &request);
  std::vector<std::uint8_t> image(request.counterAvailabilityImageSize);
  request.pCounterAvailabilityImage = image.data();
  ROOFPROF_CUPTI(api, cuptiProfilerGetCounterAvailability, &request);
  return image;
}

void RangeObjectDeleter::operator()(CUpti_RangeProfiler_Object* object) const {
  auto request = params<CUpti_RangeProfiler_Disable_Params>();
  request.pRangeProfilerObject = object;
  api->cuptiRangeProfilerDisable(&request);
}

RangeSession::RangeSession(const Configuration& configuration, CUcontext context, RangeMode mode, RangeRooms rooms)
    : configuration_(configuration), api_(configuration.api()) {
  for (rooms_ = rooms.wanted;; rooms_ = fewer(rooms_, rooms.needed)) {
    open(context);
    try {
      make_room();
      configure(mode);
      return;
    } catch (const CuptiError& error) {
      if (!is_about_numbers(error) || fewer(rooms_, rooms.needed) < kFewestRooms) throw;
    }
  }
}

// A fresh object each time: what one is worth that refused something is not documented.
void RangeSession::open(CUcontext context) {
  object_.reset();
  auto request = params<CUpti_RangeProfiler_Enable_Params>();
  request.ctx = context;
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerEnable, &request);
  object_ = RangeObject(request.pRangeProfilerObject, {&api_});
}

RangeSession::~RangeSession() {
  if (!started_) return;
  auto request = params<CUpti_RangeProfiler_Stop_Params>();
  request.pRangeProfilerObject = object_.get();
  api_.cuptiRangeProfilerStop(&request);
}

void RangeSession::make_room() {
  auto size = params<CUpti_RangeProfiler_GetCounterDataSize_Params>();
  size.pRangeProfilerObject = object_.get();
  size.pMetricNames = configuration_.names();
  size.numMetrics = configuration_.metrics().size();
  size.maxNumOfRanges = rooms_;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(rooms_);
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerGetCounterDataSize, &size);
  if (size.counterDataSize > kLargestImage) {
    throw CuptiError("cuptiRangeProfilerGetCounterDataSize", CUPTI_ERROR_OUT_OF_MEMORY);
  }
  counter_data_.assign(size.counterDataSize, 0);

  auto filled = params<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>();
  filled.pRangeProfilerObject = object_.get();
  filled.counterDataSize = counter_data_.size();
  filled.pCounterData = counter_data_.data();
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerCounterDataImageInitialize, &filled);
}

void RangeSession::configure(RangeMode mode) {
  const bool kernels = mode != RangeMode::modules;
  auto request = params<CUpti_RangeProfiler_SetConfig_Params>();
  request.pRangeProfilerObject = object_.get();
  request.configSize = configuration_.image().size();
  request.pConfig = configuration_.image().data();
  request.counterDataImageSize = counter_data_.size();
  request.pCounterDataImage = counter_data_.data();
  request.range = kernels ? CUPTI_AutoRange : CUPTI_UserRange;
  request.replayMode = kernels ? CUPTI_KernelReplay : CUPTI_UserReplay;
  request.maxRangesPerPass = rooms_;
  request.numNestingLevels = 1;
  request.minNestingLevel = 1;
  request.targetNestingLevel = mode == RangeMode::kernels ? 0 : 1;  // kernels by themselves are in no pushed range
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerSetConfig, &request);
}

void RangeSession::start() {
  auto request = params<CUpti_RangeProfiler_Start_Params>();
  request.pRangeProfilerObject = object_.get();
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerStart, &request);
  started_ = true;
}

bool RangeSession::stop() {
  auto request = params<CUpti_RangeProfiler_Stop_Params>();
  request.pRangeProfilerObject = object_.get();
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerStop, &request);
  started_ = false;
  return request.isAllPassSubmitted != 0;
}

CUptiResult RangeSession::push(const char* name) noexcept {
  auto request = params<CUpti_RangeProfiler_PushRange_Params>();
  request.pRangeProfilerObject = object_.get();
  request.pRangeName = name;
  return api_.cuptiRangeProfilerPushRange(&request);
}

CUptiResult RangeSession::pop() noexcept {
  auto request = params<CUpti_RangeProfiler_PopRange_Params>();
  request.pRangeProfilerObject = object_.get();
  return api_.cuptiRangeProfilerPopRange(&request);
}

std::size_t RangeSession::decode() {
  auto request = params<CUpti_RangeProfiler_DecodeData_Params>();
  request.pRangeProfilerObject = object_.get();
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerDecodeData, &request);
  return request.numOfRangeDropped;
}

std::size_t RangeSession::range_count() const {
  auto request = params<CUpti_RangeProfiler_GetCounterDataInfo_Params>();
  request.pCounterDataImage = counter_data_.data();
  request.counterDataImageSize = counter_data_.size();
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerGetCounterDataInfo, &request);
  return request.numTotalRanges;
}

std::string RangeSession::range_name(std::size_t range) const {
  auto request = params<CUpti_RangeProfiler_CounterData_GetRangeInfo_Params>();
  request.pCounterDataImage = counter_data_.data();
  request.counterDataImageSize = counter_data_.size();
  request.rangeIndex = range;
  request.rangeDelimiter = "/";
  ROOFPROF_CUPTI(api_, cuptiRangeProfilerCounterDataGetRangeInfo, &request);
  return request.rangeName != nullptr ? request.rangeName : "";
}

CUptiResult RangeSession::evaluate(std::size_t range, std::span<double> values) const {
  return configuration_.evaluate(counter_data_, range, values);
}

ModuleRanges::ModuleRanges(RangeSession& session, std::size_t first) : session_(session), first_(first) {}

bool ModuleRanges::is_counted(std::size_t ordinal) const {
  return ordinal >= first_ && ordinal - first_ < session_.rooms();
}

void ModuleRanges::begin_pass() {
  const std::lock_guard lock(mutex_);
  passing_ = true;
  opened_.clear();
  move_to_top();
}

void ModuleRanges::end_pass() noexcept {
  const std::lock_guard lock(mutex_);
  if (!passing_) return;
  close();
  passing_ = false;
  scopes_.clear();
}

void ModuleRanges::check() const {
  if (failed_ != nullptr) throw CuptiError(failed_, failure_);
}

void ModuleRanges::push(LaunchId id, LaunchLevel level) noexcept {
  if (level != LaunchLevel::module) return;
  const std::lock_guard lock(mutex_);
  if (!passing_) return;
  const std::thread::id thread = std::this_thread::get_id();
  if (!scopes_.empty() && scopes_.back().thread != thread) threads_took_turns_ = true;
  scopes_.push_back({thread, id});
  move_to_top();
}

void ModuleRanges::pop(LaunchLevel level) noexcept {
  if (level != LaunchLevel::module) return;
  const std::lock_guard lock(mutex_);
  if (!passing_) return;
  const std::thread::id thread = std::this_thread::get_id();
  const auto innermost =
      std::find_if(scopes_.rbegin(), scopes_.rend(), [thread](const Scope& scope) { return scope.thread == thread; });
  if (innermost == scopes_.rend()) return;  // entered before the pass began
  scopes_.erase(std::next(innermost).base());
  move_to_top();
}

// The innermost scope's range is the open one. A module called by itself stays in its range.
void ModuleRanges::move_to_top() {
  const LaunchId top = scopes_.empty() ? kNoLaunch : scopes_.back().id;
  if (!opened_.empty()) {
    if (opened_.back() == top) return;
    close();
  }
  open(top);
}

void ModuleRanges::open(LaunchId id) {
  const std::string name = range_name(opened_.size(), id);
  opened_.push_back(id);
  if (is_counted(opened_.size() - 1)) note("cuptiRangeProfilerPushRange", session_.push(name.c_str()));
}

void ModuleRanges::close() {
  if (is_counted(opened_.size() - 1)) note("cuptiRangeProfilerPopRange", session_.pop());
}

void ModuleRanges::note(const char* function, CUptiResult result) {
  if (result == CUPTI_SUCCESS || failed_ != nullptr) return;
  failed_ = function;
  failure_ = result;
}

std::string range_name(std::size_t ordinal, LaunchId id) { return std::to_string(ordinal) + ":" + std::to_string(id); }

std::optional<RangeName> read_range_name(std::string_view name) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  RangeName read;
  const char* const begin = std::to_address(name.begin());
  const char* const end = begin + name.size();
  std::from_chars_result parsed = std::from_chars(begin, end, read.ordinal);
  if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == ':') {
    parsed = std::from_chars(parsed.ptr + 1, end, read.id);
  }
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return read;
}

}  // namespace roofprof::cupti
