#include "observe/in_flight.h"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

namespace roofprof::observe {
namespace {

// Notes what both say while exceptions unwind the stack, one inside of the other.
class Notes {
 public:
  Notes(const InFlight& in_flight, std::vector<std::pair<int, unsigned>>& said, int deeper)
      : in_flight_(in_flight), said_(said), deeper_(deeper) {}
  ~Notes() {
    said_.emplace_back(std::uncaught_exceptions(), in_flight_.count());
    if (deeper_ == 0) return;
    try {
      const Notes inner(in_flight_, said_, deeper_ - 1);
      throw std::runtime_error("inner");
    } catch (const std::runtime_error&) {
      said_.emplace_back(std::uncaught_exceptions(), in_flight_.count());
    }
  }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;

 private:
  const InFlight& in_flight_;
  std::vector<std::pair<int, unsigned>>& said_;
  int deeper_;
};

TEST(InFlight, CountsAsTheStandardLibraryDoes) {
  const InFlight in_flight;
  std::vector<std::pair<int, unsigned>> said = {{std::uncaught_exceptions(), in_flight.count()}};
  try {
    const Notes notes(in_flight, said, 2);
    throw std::runtime_error("outer");
  } catch (const std::runtime_error&) {
    said.emplace_back(std::uncaught_exceptions(), in_flight.count());
  }
  const std::vector<std::pair<int, unsigned>> expected = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {2, 2}, {1, 1}, {0, 0}};
  EXPECT_EQ(said, expected);
}

}  // namespace
}  // namespace roofprof::observe
