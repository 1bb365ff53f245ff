#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/counted_bytes.h"
#include "core/idle.h"
#include "core/json/file.h"
#include "core/json/members.h"
#include "core/off_device.h"
#include "core/profile.h"
#include "core/utf8.h"
#include "roofprof/report.h"

namespace roofprof {

namespace {

// A file of another kind, and what to do with it.
struct OtherFile : RuntimeError {
  explicit OtherFile(std::string_view kind) : RuntimeError("not a roofprof report, but " + std::string(kind)) {}
};

// An earlier version that can be read, except for two things: shapes of ops, which are texts there, and the options of
// a prediction, which are words.
constexpr std::string_view kEarlierVersion = "5";

constexpr std::string_view kTrace = "a trace: `roofprof import` makes a report of it";

// Throws OtherFile where the first bytes say that it is none.
void check_begin(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) {
    throw OtherFile(
        "packed by gzip: `roofprof import` makes a report of a packed trace, and a report must be unpacked");
  }
  if (text.starts_with("SQLite format 3")) {
    throw OtherFile("a database of SQLite: `roofprof import` makes a report of one that nsys exported");
  }
}

// Returns the schema_version as written. It is read first, because another version may differ in anything.
std::string version_of(std::string_view text) {
  JsonReader json(text);
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "schema_version") return std::string(json.raw());
    if (*key == "traceEvents") throw OtherFile(kTrace);
    if (*key == "schema") {
      throw RuntimeError("not a report, but another file of roofprof: " + shown(json.raw()));
    }
    json.skip();
  }
  json.lacks_key("schema_version");
}

// Returns what else of roofprof's the text is, by the keys of its outer object; empty: none that is known.
std::string_view kind_of_other_file(std::string_view text) {
  JsonReader json(text);
  json.begin_object();
  std::string_view kind;
  while (const auto key = json.next_key()) {
    if (*key == "before") return "a comparison of two";
    if (*key == "modules") return "";
    if (*key == "ceilings") kind = "a file of roofs (--ceilings takes it)";
    json.skip();
  }
  return kind;
}

std::shared_ptr<const Profile> read_data(std::string_view text) {
  auto data = std::make_shared<Profile>();
  JsonReader json(text);
  read_value(json, *data);
  json.finish();
  // Files of earlier versions have counted bytes only with the kernels.
  auto& counts = data->counts;
  const bool any_counted = std::ranges::any_of(counts.ops, [](const auto& op) { return op.counted.has_value(); });
  if (data->device && !any_counted) set_counted_bytes(counts, *data->device);
  // They lack `off_device` too, which follows from the kernels; a part and a merged report lack some of these.
  const bool is_whole = !data->origin.part && data->origin.merged() == nullptr && data->origin.predicted() == nullptr;
  if (is_whole && std::ranges::none_of(counts.ops, &OpBucket::off_device))
    set_off_device(counts, data->tree, data->device);
  settle_idle(*data);
  return data;
}

}  // namespace

Report Report::from_json_text(std::string_view text) {
  std::string version;
  check_begin(text);
  try {
    version = version_of(text);
    if (version == std::to_string(kReportSchemaVersion) || version == kEarlierVersion)
      return make_report(read_data(text), {});
  } catch (const JsonError& error) {
    throw RuntimeError(std::string("not a roofprof report: ") + error.what());
  } catch (const std::logic_error& error) {  // what was read does not fit together
    throw RuntimeError(std::string("not a roofprof report: ") + error.what());
  }
  if (const auto kind = kind_of_other_file(text); !kind.empty()) {
    throw RuntimeError("not a report, but " + std::string(kind));
  }
  throw RuntimeError("not a report of schema version " + std::to_string(kReportSchemaVersion) +
                     ", which this roofprof reads, but " + shown(version) +
                     ": read it with the roofprof that wrote it, or make it again (roofprof docs report#json)");
}

Report Report::from_json(const std::string& path) {
  const std::string text = read_whole_file(path);
  try {
    return from_json_text(text);
  } catch (const std::runtime_error& error) {
    throw RuntimeError(printable(path) + ": " + error.what());
  }
}

}  // namespace roofprof
