// Prints, as JSON, what each chip of a libcupti's makes of our metric sets, and the numbers of CUDA's functions that
// launch by the names that it gives: metric_sets_of LIBCUPTI; or the values in a counter image that was saved on a
// device: metric_sets_of LIBCUPTI FOLDER. Works without a driver or device, by the host half of CUPTI's
// profiler; a process of its own, as torch has another libcupti loaded. tests/python/collect/test_metric_sets.py says
// what must come out.

#include <dlfcn.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cupti/launch_calls.h"
#include "device/cupti/metric_sets.h"

namespace roofprof::cupti {
namespace {

constexpr CounterRequest kEverything = {.memory = true, .executed_flops = true};

void* open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// Without the driver's gate: with 13.0 nothing below asks for a driver.
Api open_without_driver(void* library) {
  Api api;
#define FUNCTION(name) look_up(library, #name, api.name);
#define REQUIRED FUNCTION
#define ACTIVITY FUNCTION
#define COUNTERS FUNCTION
#define OPTIONAL FUNCTION
#include "device/cupti/functions.def"
#undef REQUIRED
#undef ACTIVITY
#undef COUNTERS
#undef OPTIONAL
#undef FUNCTION
  return api;
}

template <class Call>
int code_of(const Call& call) {
  try {
    call();
    return CUPTI_SUCCESS;
  } catch (const CuptiError& error) {
    return error.code();
  }
}

class Properties {
 public:
  explicit Properties(void* library) { look_up(library, "cuptiProfilerHostGetMetricProperties", ask_); }

  // "byte"; what it is counted in. Throws CuptiError.
  std::string unit(const HostProfiler& host, const std::string& metric) const {
    const HostObject object = host.make_object();
    auto request = params<CUpti_Profiler_Host_GetMetricProperties_Params>();
    request.pHostObject = object.get();
    request.pMetricName = metric.c_str();
    checked("cuptiProfilerHostGetMetricProperties", ask_, &request);
    return request.pDimUnit;
  }

 private:
  decltype(&::cuptiProfilerHostGetMetricProperties) ask_ = nullptr;
};

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

template <class Items, class Write>
std::string list(const Items& items, const Write& write) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + write(item);
  return text;
}

std::string counter_text(const ResolvedCounter& counter, const HostProfiler& host, const Properties& properties) {
  const CounterSource& source = counter.source;
  const auto metric_text = [&](const std::string& metric) {
    return in_quotes(metric) + ": " + in_quotes(properties.unit(host, metric));
  };
  return in_quotes(kCounterNames[static_cast<std::size_t>(source.counter)]) + ": {\"metrics\": {" +
         list(source.metrics, metric_text) + "}, \"formula\": " + in_quotes(source.formula) +
         ", \"missing\": " + in_quotes(source.missing) + "}";
}

std::string group_text(const MetricGroup& group) {
  return "{\"metrics\": [" + list(group.configuration->metrics(), in_quotes) +
         "], \"passes\": " + std::to_string(group.configuration->passes()) + "}";
}

std::string chip_text(const Api& api, const std::string& chip, const Properties& properties) {
  if (const int code = code_of([&] { HostProfiler(api, chip); }); code != CUPTI_SUCCESS) {
    return in_quotes(chip) + ": {\"error\": " + std::to_string(code) + "}";
  }
  const HostProfiler host(api, chip);
  const CounterPlan plan = plan_counters(host, kEverything);
  return "\n" + in_quotes(chip) + ": {\"counters\": {" +
         list(plan.counters, [&](const auto& counter) { return counter_text(counter, host, properties); }) +
         "}, \"groups\": [" + list(plan.groups, group_text) + "]}";
}

// What CUPTI answers to slips of ours.
std::string errors_text(const Api& api, const Properties& properties) {
  const HostProfiler host(api, "GH100");
  const std::map<std::string, int> codes = {
      {"chip GP102", code_of([&] { HostProfiler(api, "GP102"); })},
      {"chip XX999", code_of([&] { HostProfiler(api, "XX999"); })},
      {"configure unknown", code_of([&] { Configuration(host, {"dram__bytes_op_read.sum"}); })},
      {"configure without rollup", code_of([&] { Configuration(host, {"dram__bytes_read"}); })},
      {"configure", code_of([&] { Configuration(host, {"dram__bytes_read.sum"}); })},
      {"properties unknown", code_of([&] { properties.unit(host, "dram__bytes_op_read"); })},
      {"properties", code_of([&] { properties.unit(host, "dram__bytes_read"); })},
  };
  return list(codes, [](const auto& entry) { return in_quotes(entry.first) + ": " + std::to_string(entry.second); });
}

std::string launches_text(const Api& api, CUpti_CallbackDomain domain) {
  std::vector<Call> launches;
  for (const Call& call : named_calls(api)) {
    if (call.domain == domain && call.launches) launches.push_back(call);
  }
  return list(launches, [](const Call& call) { return std::to_string(call.id); });
}

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// about.txt: the chip, how many ranges the image has, then a metric on each line.
void print_image(const Api& api, const std::string& folder) {
  std::ifstream about(folder + "/about.txt");
  std::string chip;
  std::size_t ranges = 0;
  about >> chip >> ranges;
  std::vector<std::string> metrics{std::istream_iterator<std::string>(about), {}};
  const HostProfiler host(api, chip, bytes_of(folder + "/availability.bin"));
  const Configuration configuration(host, std::move(metrics));
  const auto image = bytes_of(folder + "/counter_data.bin");
  std::vector<double> values(configuration.metrics().size());
  std::cout << std::fixed;
  for (std::size_t range = 0; range < ranges; ++range) {
    if (const auto code = configuration.evaluate(image, range, values); code != CUPTI_SUCCESS) {
      throw std::runtime_error("the image cannot be evaluated: " + std::to_string(code));
    }
    std::cout << (range == 0 ? "[[" : ", [");
    for (std::size_t i = 0; i < values.size(); ++i) std::cout << (i == 0 ? "" : ", ") << values[i];
    std::cout << ']';
  }
  std::cout << "]\n";
}

void print(const std::string& path, const std::string& image) {
  // It is looked for by name when the profiler starts, and lies beside libcupti, which has no path to it.
  open(path.substr(0, path.rfind('/') + 1) + "libnvperf_host.so");
  void* library = open(path);
  const Api api = open_without_driver(library);
  if (!image.empty()) return print_image(api, image);
  std::uint32_t version = 0;
  ROOFPROF_CUPTI(api, cuptiGetVersion, &version);
  const Properties properties(library);
  std::cout << "{\"version\": " << version << ",\n \"launches\": {\"runtime\": ["
            << launches_text(api, CUPTI_CB_DOMAIN_RUNTIME_API) << "], \"driver\": ["
            << launches_text(api, CUPTI_CB_DOMAIN_DRIVER_API) << "]},\n \"errors\": {" << errors_text(api, properties)
            << "},\n \"chips\": {\n"
            << list(supported_chips(api), [&](const auto& chip) { return chip_text(api, chip, properties); }) << "}}\n";
}

}  // namespace
}  // namespace roofprof::cupti

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: metric_sets_of LIBCUPTI [FOLDER]\n";
    return 2;
  }
  try {
    roofprof::cupti::print(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::cerr << "metric_sets_of: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
