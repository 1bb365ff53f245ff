#include "roofs/file.h"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "json/file.h"
#include "json/members.h"

namespace roofprof {

namespace {

void require_rate(double rate, const std::string& what) {
  if (!std::isfinite(rate) || rate <= 0) {
    throw JsonError(what + " is " + json_number(rate) + ", not a positive number");
  }
}

void require_positive(const Ceilings& ceilings) {
  for (const auto& peak : ceilings.compute) {
    require_rate(peak.operations_per_second, "operations_per_second of " + std::string(name_of(peak.dtype)));
  }
  for (const auto& level : ceilings.memory) {
    require_rate(level.bytes_per_second, "bytes_per_second of " + shown(level.level));
  }
  std::int64_t smaller = 0;
  for (const auto& point : ceilings.curve.points) {
    const std::string where = " of the curve's working set of " + std::to_string(point.working_set_bytes) + " bytes";
    if (point.working_set_bytes <= smaller) throw JsonError("the working sets of the curve do not rise");
    smaller = point.working_set_bytes;
    require_rate(point.read, "read" + where);
    require_rate(point.triad, "triad" + where);
    require_rate(point.copy, "copy" + where);
    require_rate(point.write, "write" + where);
    require_rate(point.update, "update" + where);
  }
}

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
  require_positive(file.roofs.ceilings);
  return file;
}

}  // namespace

CeilingsFile read_ceilings_file(const std::string& path) {
  const std::string text = read_whole_file(path);
  try {
    return parsed(text);
  } catch (const JsonError& error) {
    throw std::runtime_error(path + " holds no roofs: " + error.what());
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

}  // namespace roofprof
