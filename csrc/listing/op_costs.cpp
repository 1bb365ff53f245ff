// Writes the tables of costs as JSON, once for each build: `roofprof ops` shows it without loading torch.

#include <cstdio>
#include <exception>

#include "json/file.h"
#include "json/writer.h"
#include "ops/registry.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("one argument is needed: the file to write\n", stderr);
    return 2;
  }
  roofprof::JsonWriter json;
  json.begin_array();
  for (const auto& family : roofprof::ops::families()) {
    for (const auto& line : family.costs) {
      json.break_line();
      json.begin_object();
      json.member("family", family.name);
      json.member("op", line.op);
      json.member("formula", line.formula);
      json.member("source", line.source);
      json.member("scalars", line.scalars);
      json.member("free", roofprof::ops::is_free(line));
      json.end_object();
    }
  }
  json.break_line();
  json.end_array();
  try {
    roofprof::write_whole_file(arguments[1], json.take());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
