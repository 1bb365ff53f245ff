// The counting rule, case by case. Each line quotes the sentence that it holds, of docs/definitions.md,
// docs/counting.md or csrc/DESIGN.md; a sentence that no longer stands there fails too.

#include "observe/rule/counting_rule.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace roofprof::observe {
namespace {

constexpr OpClass kCounted{.kind = OpKind::counted};
constexpr OpClass kComposite{.kind = OpKind::counted, .composite_implicit = true};  // counted, such as linear
constexpr OpClass kView{.kind = OpKind::view};
constexpr OpClass kTransparent{.kind = OpKind::transparent, .composite_implicit = true};
constexpr OpClass kUnknown{.kind = OpKind::unknown};
constexpr OpClass kUnknownComposite{.kind = OpKind::unknown, .composite_explicit = true};
constexpr OpClass kExtension{.kind = OpKind::unknown, .of_extension = true};
constexpr OpClass kExtensionFunction{.kind = OpKind::unknown, .composite_implicit = true, .of_extension = true};
constexpr OpClass kExtensionComposite{.kind = OpKind::unknown, .composite_explicit = true, .of_extension = true};
constexpr OpClass kCompiled{.kind = OpKind::compiled};

constexpr DispatchPath kPlain{};
constexpr DispatchPath kWrapped{.wrapped = true};  // by autocast, functorch or a subclass
constexpr DispatchPath kByMode{.wrapped = true, .by_mode = true};
constexpr DispatchPath kFake{.fake = true};
constexpr DispatchPath kWrappedFake{.wrapped = true, .fake = true};
constexpr DispatchPath kDual{.dual = true};

constexpr WorkInside kNothing{};
constexpr WorkInside kFills{.bytes = true};
constexpr WorkInside kCopies{.bytes = true, .copies = true};
constexpr WorkInside kArithmetic{.bytes = true, .operations = true};
constexpr WorkInside kNoCost{.uncosted = true};
constexpr WorkInside kBuffer{.evidence = kFreshMemory | kBufferMade};
constexpr WorkInside kArithmeticAndBuffer{.bytes = true, .operations = true, .evidence = kFreshMemory | kBufferMade};
constexpr WorkInside kArithmeticAndNumPy{.bytes = true, .operations = true, .evidence = kReadOut};
constexpr WorkInside kDeclaredAndBuffer{.operations = true, .declared = true, .evidence = kFreshMemory | kBufferMade};

// The sentences.
constexpr const char* kOutermost = "the outermost op that has a cost counts, and what it dispatches inside does not";
constexpr const char* kTransparentOp = "An op without a cost is transparent: the ops that it calls count.";
constexpr const char* kInnerIsTheWork = "what is dispatched inside is the work, casts and collectives included";
constexpr const char* kOnlyASubclass = "The outer op counts only where a subclass dispatches nothing.";
constexpr const char* kFakeAsReal = "Fake tensors count as real ones do";
constexpr const char* kTangents = "A dual tensor's tangents (forward-mode AD) are work in addition to the op's own.";
constexpr const char* kViewsAreFree = "views and Python scalars count nothing";
constexpr const char* kNothingKnown = "ops for which nothing is known, with their calls";
constexpr const char* kOfAnExtension =
    "an extension's op that makes a buffer for its kernel or hands tensors to NumPy, whatever it dispatches besides";
constexpr const char* kNothingComputed =
    "an extension's op in which nothing computed, whatever it allocated, filled or copied";
constexpr const char* kCopiesOfAnExtension = "copies alone never are";
constexpr const char* kDeclared = "one call of an operator of that name in the module and phase that run";
constexpr const char* kDeclaredBlock = "what is dispatched inside is part of it";
constexpr const char* kCompiledRegion = "stands for all that the compiled code and the module around it did";
constexpr const char* kRaised = "An op that raised did not do its work";
constexpr const char* kShapesAlone = "asks fake tensors for the shapes of its result";
constexpr const char* kAnswerKept = "A dispatch mode that dispatches nothing inside had kept the answer";
constexpr const char* kSavedHooks = "A user's hooks on saved tensors are work in addition to the op's own";
constexpr const char* kOnlyCalls = "An operator that only calls other operators does what these do";
constexpr const char* kCopiesExplain = "these are all its work only if it has no separate kernel";
constexpr const char* kMuted = "Records of nested ops are switched off";

std::string without_layout(const std::string& text) { return std::regex_replace(text, std::regex("\\s+"), " "); }

const std::string& documents() {
  static const std::string both = [] {
    std::string text;
    for (const char* name : {"docs/definitions.md", "docs/counting.md", "csrc/DESIGN.md"}) {
      std::ifstream file(std::string(ROOFPROF_TEST_DATA "/../") + name);
      text.append(std::istreambuf_iterator<char>(file), {});
    }
    return without_layout(text);
  }();
  return both;
}

void expect_stands_in_documents(const char* sentence) {
  EXPECT_NE(documents().find(sentence), std::string::npos) << "no document says: " << sentence;
}

struct StartCase {
  const char* sentence;
  OpClass op;
  DispatchPath path;
  bool only_shapes;
  NestedWork nested;
  bool launches;
};

const std::vector<StartCase> kStarts = {
    {kOutermost, kCounted, kPlain, false, NestedWork::owned, true},
    {kViewsAreFree, kView, kPlain, false, NestedWork::owned, false},
    {kTransparentOp, kUnknown, kPlain, false, NestedWork::transparent, true},
    {kOnlyCalls, kTransparent, kPlain, false, NestedWork::transparent, false},
    {kInnerIsTheWork, kCounted, kWrapped, false, NestedWork::transparent, false},
    {kFakeAsReal, kCounted, kFake, false, NestedWork::owned, true},
    {kFakeAsReal, kCounted, kWrappedFake, false, NestedWork::transparent, false},
    {kTangents, kCounted, kDual, false, NestedWork::owned_below_autograd, true},
    // The operators that it calls have the tangents.
    {kTangents, kComposite, kDual, false, NestedWork::transparent, false},
    {kShapesAlone, kCounted, kFake, true, NestedWork::owned, false},
    {kCompiledRegion, kCompiled, kPlain, false, NestedWork::transparent, true},
};

TEST(CountingRule, SaysAtTheStartWhoseNestedWorkIs) {
  for (const auto& line : kStarts) {
    SCOPED_TRACE(line.sentence);
    expect_stands_in_documents(line.sentence);
    EXPECT_EQ(nested_work(line.op, line.path, line.only_shapes), line.nested);
    EXPECT_EQ(may_launch(line.op, line.path, line.only_shapes), line.launches);
  }
}

struct NestedCase {
  const char* sentence;
  NestedWork outer;
  bool grad_mode;
  bool below_autograd;
  bool part;
};

const std::vector<NestedCase> kNested = {
    {kOutermost, NestedWork::owned, true, false, true},
    {kDeclaredBlock, NestedWork::owned, true, false, true},
    {kTransparentOp, NestedWork::transparent, true, true, false},
    {kTangents, NestedWork::owned_below_autograd, false, false, false},
    {kTangents, NestedWork::owned_below_autograd, false, true, true},
    {kSavedHooks, NestedWork::owned_but_hooks, false, false, false},
    {kSavedHooks, NestedWork::owned_but_hooks, false, true, true},
};

TEST(CountingRule, TellsWhatIsPartOfTheOpAround) {
  for (const auto& line : kNested) {
    SCOPED_TRACE(line.sentence);
    expect_stands_in_documents(line.sentence);
    EXPECT_EQ(is_part_of(line.outer, line.grad_mode, line.below_autograd), line.part);
  }
}

struct EndCase {
  const char* sentence;
  OpClass op;
  DispatchPath path;
  WorkInside inside;
  OpEnd end;
  Verdict verdict;
};

const std::vector<EndCase> kEnds = {
    {kOutermost, kCounted, kPlain, kNothing, {}, Verdict::count},
    {kViewsAreFree, kView, kPlain, kNothing, {}, Verdict::count},
    {kFakeAsReal, kCounted, kFake, kNothing, {}, Verdict::count},
    {kTangents, kCounted, kDual, kArithmetic, {}, Verdict::count},
    {kTangents, kComposite, kDual, kArithmetic, {}, Verdict::look_through},

    {kOnlyCalls, kTransparent, kPlain, kArithmetic, {}, Verdict::look_through},
    {kTransparentOp, kUnknown, kPlain, kArithmetic, {}, Verdict::look_through},
    {kNothingKnown, kUnknown, kPlain, kNothing, {}, Verdict::list_uncosted},
    {kNothingKnown, kUnknown, kPlain, kNoCost, {}, Verdict::list_uncosted},
    {kCopiesExplain, kUnknown, kPlain, kCopies, {}, Verdict::list_uncosted},
    {kCopiesExplain, kUnknownComposite, kPlain, kCopies, {}, Verdict::look_through},
    {kCopiesExplain, kUnknownComposite, kPlain, kFills, {}, Verdict::list_uncosted},
    {kNothingComputed, kExtensionFunction, kPlain, kFills, {}, Verdict::list_uncosted},
    {kCopiesOfAnExtension, kExtensionFunction, kPlain, kCopies, {}, Verdict::list_uncosted},
    {kCopiesOfAnExtension, kExtensionComposite, kPlain, kCopies, {}, Verdict::list_uncosted},
    {kTransparentOp, kExtensionFunction, kPlain, kArithmetic, {}, Verdict::look_through},
    {kTransparentOp, kExtensionFunction, kPlain, kNoCost, {}, Verdict::look_through},  // which is listed
    {kOfAnExtension, kExtension, kPlain, kArithmeticAndBuffer, {}, Verdict::list_uncosted},
    {kOfAnExtension, kExtension, kPlain, kArithmeticAndNumPy, {}, Verdict::list_uncosted},
    {kOfAnExtension, kUnknown, kPlain, kArithmeticAndBuffer, {}, Verdict::look_through},  // torch's own: none is hidden
    {kNothingKnown, kExtension, kPlain, kBuffer, {}, Verdict::list_uncosted},
    {kDeclared, kExtension, kPlain, kDeclaredAndBuffer, {}, Verdict::look_through},

    {kInnerIsTheWork, kCounted, kWrapped, kArithmetic, {}, Verdict::look_through},
    {kInnerIsTheWork, kCounted, kWrapped, kNoCost, {}, Verdict::look_through},
    {kOnlyASubclass, kCounted, kWrapped, kNothing, {}, Verdict::count},
    {kOnlyASubclass, kUnknown, kWrapped, kNothing, {}, Verdict::list_uncosted},
    {kAnswerKept, kCounted, kByMode, kNothing, {}, Verdict::look_through},
    {kInnerIsTheWork, kCounted, kByMode, kArithmetic, {}, Verdict::look_through},

    {kShapesAlone, kCounted, kFake, kNothing, {.only_shapes = true}, Verdict::skip},
    {kRaised, kCounted, kPlain, kNothing, {.raised = true}, Verdict::skip},
    {kDeclared, kCounted, kPlain, kNothing, {.declared = true}, Verdict::skip},  // it was counted as it began
    {kCompiledRegion, kCompiled, kPlain, kArithmetic, {}, Verdict::count},
};

TEST(CountingRule, DecidesAtTheEndWhatCounts) {
  for (const auto& line : kEnds) {
    SCOPED_TRACE(line.sentence);
    expect_stands_in_documents(line.sentence);
    EXPECT_EQ(verdict(line.op, line.path, line.end, line.inside), line.verdict)
        << "line " << &line - kEnds.data() + 1 << " of the table";
  }
}

// DTensor's op holds tensors of its own, and asks fake ones inside.
TEST(CountingRule, OnlyAFakeOpInsideARealWrapperAsksForShapes) {
  expect_stands_in_documents(kShapesAlone);
  EXPECT_TRUE(asks_for_shapes(kFake, &kWrapped));
  EXPECT_TRUE(asks_for_shapes(kWrappedFake, &kWrapped));
  EXPECT_FALSE(asks_for_shapes(kFake, nullptr));
  EXPECT_FALSE(asks_for_shapes(kFake, &kWrappedFake));  // a model counted without data
  EXPECT_FALSE(asks_for_shapes(kPlain, &kWrapped));
}

TEST(CountingRule, HooksOnSavedTensorsMatterToOwnedWorkAlone) {
  EXPECT_EQ(with_saved_tensor_hooks(NestedWork::owned), NestedWork::owned_but_hooks);
  EXPECT_EQ(with_saved_tensor_hooks(NestedWork::owned_below_autograd), NestedWork::owned_below_autograd);
  EXPECT_EQ(with_saved_tensor_hooks(NestedWork::transparent), NestedWork::transparent);
}

TEST(CountingRule, MutesOnlyWhatIsPartOfTheOpInAnyCase) {
  expect_stands_in_documents(kMuted);
  EXPECT_TRUE(is_worth_muting(NestedWork::owned, 4));
  EXPECT_FALSE(is_worth_muting(NestedWork::owned, 3));
  EXPECT_FALSE(is_worth_muting(NestedWork::transparent, 100));
  EXPECT_FALSE(is_worth_muting(NestedWork::owned_below_autograd, 100));
  EXPECT_FALSE(is_worth_muting(NestedWork::owned_but_hooks, 100));
}

TEST(CountingRule, AddsUpWhatWasCountedInside) {
  WorkInside outer;
  outer.add(Work{});  // a view
  EXPECT_FALSE(outer.any());
  Work copy;
  copy.write_bytes = 4;
  outer.add(copy);
  EXPECT_TRUE(outer.bytes);
  EXPECT_FALSE(outer.copies);
  copy.read_bytes = 4;
  outer.add(copy);
  EXPECT_TRUE(outer.copies);
  EXPECT_FALSE(outer.operations);
  Work integers;
  integers.operations_in(DType::int8) = 1;
  outer.add(integers);
  EXPECT_TRUE(outer.operations);
  WorkInside around;
  around.add(kNoCost);
  around.add(kDeclaredAndBuffer);
  EXPECT_TRUE(around.uncosted && around.operations && around.declared);
  EXPECT_FALSE(around.bytes);
  EXPECT_EQ(around.evidence, kFreshMemory | kBufferMade);
}

struct EvidenceCase {
  const char* sentence;
  Evidence seen;
  bool function;
  bool module;
};

const std::vector<EvidenceCase> kSeen = {
    {"in which no op did anything, but memory was allocated", kFreshMemory, true, true},
    {"came in from outside (NumPy, an extension)", kFreshMemory | kReadOut, true, true},
    {"work that bypassed the dispatcher", kWorkSeen | kFreshMemory | kReadOut, false, false},
    {"in which no op did anything, but memory was allocated", 0, false, false},
    {"in which no op did anything, but memory was allocated", kReadOut, false, true},
    // Of a function that returns a view of its input: a constant of its own. A module's output is looked at.
    {"a module call of that kind whose output is in none of the memory that it had", kFreshMemory | kViewMade, false,
     true},
};

TEST(CountingRule, TellsWhatCanHaveBypassedTheDispatcher) {
  for (const auto& line : kSeen) {
    SCOPED_TRACE(line.sentence);
    expect_stands_in_documents(line.sentence);
    EXPECT_EQ(function_bypasses(line.seen), line.function);
    EXPECT_EQ(module_may_bypass(line.seen), line.module);
  }
}

}  // namespace
}  // namespace roofprof::observe
