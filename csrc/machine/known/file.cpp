#include "machine/known/file.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/json/file.h"
#include "core/json/members.h"
#include "core/roofs.h"
#include "core/utf8.h"

namespace roofprof {

namespace {

CeilingsFile parsed(std::string_view text) {
  CeilingsFile file;
  JsonReader json(text);
  bool has_version = false;
  bool has_ceilings = false;
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key == "schema_version") {
      const std::string version(json.raw());
      has_version = version == "1" || version == std::to_string(kCeilingsSchemaVersion);
      if (!has_version) {
        throw JsonError("its schema_version is " + shown(version) + ", and this roofprof reads 1 to " +
                        std::to_string(kCeilingsSchemaVersion));
      }
    } else if (*key == "measured_on") {
      read_value(json, file.measured_on);
    } else if (*key == "ceilings") {
      has_ceilings = true;
      read_value(json, file.roofs.ceilings);
    } else if (*key == "notes") {
      read_value(json, file.roofs.notes);
    } else {
      json.skip();
    }
  }
  json.finish();
  if (!has_version) json.lacks_key("schema_version");
  if (!has_ceilings) json.lacks_key("ceilings");
  if (const auto wrong = impossible_roof(file.roofs.ceilings); !wrong.empty()) throw JsonError(wrong);
  return file;
}

}  // namespace

CeilingsFile read_ceilings_file(const std::string& path) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 24;  // a thousand times what roofs need
  const std::string text = read_whole_file(path, kLargest);
  try {
    return parsed(text);
  } catch (const JsonError& error) {
    throw RuntimeError("cannot read ceilings from " + printable(path) + ": " + error.what());
  }
}

void write_ceilings_file(const CeilingsFile& file, const std::string& path) {
  JsonWriter json;
  json.begin_object();
  json.break_line();
  json.member("schema_version", kCeilingsSchemaVersion);
  if (!file.measured_on.empty()) {
    json.break_line();
    json.key("measured_on");
    write_value(json, file.measured_on);
  }
  json.break_line();
  json.key("ceilings");
  write_value(json, file.roofs.ceilings);
  json.break_line();
  json.member("notes", file.roofs.notes);
  json.break_line();
  json.end_object();
  write_whole_file(path, json.take());
}

Ceilings Ceilings::load(const std::string& path) { return read_ceilings_file(path).roofs.ceilings; }

void Ceilings::save(const std::string& path) const { write_ceilings_file({{}, {*this, {}}}, path); }

std::optional<MeasuredCeilings> given_ceilings() {
  const char* set = std::getenv("ROOFPROF_CEILINGS");
  const std::string given = set != nullptr ? set : "";
  if (given.empty()) return std::nullopt;
  if (given == "off") return MeasuredCeilings{};
  try {
    return read_ceilings_file(given).roofs;
  } catch (const std::runtime_error& error) {
    throw RuntimeError(std::string("ROOFPROF_CEILINGS must name a file of roofs or be \"off\": ") + error.what());
  }
}

}  // namespace roofprof
