#pragma once
// What roofprof itself throws. What a call of the model throws comes through as it was thrown.
//
//   try {
//     std::cout << roofprof::Report::from_json(path);
//   } catch (const roofprof::Error& error) {
//     std::cerr << error.what() << "\n";
//   }

#include <stdexcept>
#include <string>

namespace roofprof {

// The base of all of it. It is no std::exception, but everything thrown is one as well: the one that headers name.
class [[gnu::visibility("default")]] Error {
 public:
  virtual ~Error() = default;
  // Returns one sentence: what is wrong, with which value, and often what to do.
  [[nodiscard]] virtual const char* what() const noexcept = 0;
};

// An Error that is that exception of the standard library, too: a handler of either gets it.
template <class Standard>
class [[gnu::visibility("default")]] ErrorOf : public Standard, public Error {
 public:
  explicit ErrorOf(const std::string& text) : Standard(text) {}
  [[nodiscard]] const char* what() const noexcept override { return Standard::what(); }
};
using InvalidArgument = ErrorOf<std::invalid_argument>;
using OutOfRange = ErrorOf<std::out_of_range>;
using LogicError = ErrorOf<std::logic_error>;
using RuntimeError = ErrorOf<std::runtime_error>;

}  // namespace roofprof
