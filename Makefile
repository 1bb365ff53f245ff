# Everything a developer repeats; `make help` lists it. All tools come from pip into .venv, the build stays in build/.
PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= $(shell nproc)
# The folder that setup.py builds in.
BUILD   = build/cmake
BIN     = $(VENV)/bin
CXX    ?= g++

export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
export CTEST_PARALLEL_LEVEL = $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Nothing here needs a CUDA toolkit, and one that is set must not change the build.
unexport CUDA_HOME
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help

say = @printf '\n==> %s\n'

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- environment: a stamp in .venv says what is installed; a change of pyproject.toml asks pip again

$(VENV)/.created:
	$(say) "creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo 'roofprof needs Python 3.10 or newer: set PYTHON=...'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo 'Python has no venv module: install python3-venv'; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

# Before gigabytes are fetched: whether the build can work at all.
compiler:
	@printf '#include <bit>\n#include <source_location>\nint main() { return std::bit_cast<int>(0u); }\n' | \
	  $(CXX) -std=c++20 -fsyntax-only -x c++ - 2>/dev/null || { echo '$(CXX) is no C++20 compiler: install g++ 11 or clang 14 or newer, or set CXX=...'; exit 1; }
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) -c 'import os, sysconfig; p = sysconfig.get_path("include"); os.stat(p + "/Python.h")' 2>/dev/null || \
	  { echo 'Python.h is missing: install python3-dev'; exit 1; }

# $(VENV)/.has-<list>: a list of requirements in pyproject.toml is installed, within the build's own limits on torch.
$(VENV)/.has-demo $(VENV)/.has-test $(VENV)/.has-integrations $(VENV)/.has-docs $(VENV)/.has-bench $(VENV)/.has-lint: $(VENV)/.has-requires
$(VENV)/.has-%: pyproject.toml | compiler $(VENV)/.created
	$(say) "installing what pyproject.toml lists under $* $(if $(filter requires,$*),(with torch: some gigabytes the first time))"
	@sed -n '/^$* = \[/,/^\]/s/^ *"\(.*\)",.*/\1/p' pyproject.toml > $@.txt
	$(BIN)/python -m pip install -r $@.txt $(if $(filter-out requires,$*),--quiet -c $(VENV)/.has-requires.txt)
	@touch $@

.PRECIOUS: $(VENV)/.has-%

# ---- build

.PHONY: help venv compiler build demo docs test test-integrations sanitize clang lint format bench bench-cpp clean

build: $(VENV)/.has-requires  ## the extension, installed into .venv in editable form
	$(say) "building the extension in $(BUILD)"
	$(BIN)/python setup.py -q build_ext --inplace
	@$(MAKE) --no-print-directory --silent $(VENV)/.installed

$(VENV)/.installed: setup.py pyproject.toml
	$(say) "installing roofprof into $(VENV)"
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	@touch $@

# ---- run

demo: build $(VENV)/.has-demo  ## profile two models on this machine; reports go to out/
	$(say) "profiling two models"
	$(BIN)/python examples/demo.py

docs: build $(VENV)/.has-docs  ## the documentation site, in build/docs
	$(say) "the documentation site in build/docs"
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet docs build/docs

.PHONY: cpp-tests
cpp-tests: build $(VENV)/.has-test
	$(say) "building the C++ tests"
	$(BIN)/cmake -S . -B $(BUILD) -DROOFPROF_TESTS=ON
	$(BIN)/cmake --build $(BUILD)

# How many processes share the Python tests.
WORKERS ?= 2
# Of the Python tests those that measure this machine come last, one after the other.
SLOWNESS = $(if $(SLOW),,and not slow)
test: cpp-tests  ## the core: GoogleTest, then pytest (SLOW=1: the slow ones too; PYTEST_ARGS=...)
	$(say) "C++ tests"
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure
	$(say) "Python tests"
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not integration and not measuring $(SLOWNESS)" $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m "measuring and not integration $(SLOWNESS)" $(PYTEST_ARGS) || test $$? = 5  # none was picked
	@awk '/\[  PASSED  \]/ { n += $$4 } END { print "and of the C++ tests: " n " passed" }' $(BUILD)/Testing/Temporary/LastTest.log

test-integrations: cpp-tests $(VENV)/.has-integrations  ## pytest with trackers, trainers, other tools, models, a browser
	@test ! -x $(BUILD)/tests/cpp/metric_sets_of || $(MAKE) --no-print-directory --silent build/cupti-13.0/.fetched
	@$(MAKE) --no-print-directory --silent build/torchdrive/.fetched
	$(say) "integrations"
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "integration and not measuring $(SLOWNESS)" $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m "integration and measuring $(SLOWNESS)" $(PYTEST_ARGS) || test $$? = 5  # none was picked

.PHONY: test-measuring
test-measuring: cpp-tests  # of the tests, those that measure this machine
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure -L '^measuring$$'
	$(BIN)/python -m pytest -m "measuring and not integration" $(PYTEST_ARGS)

# Packages in folders of their own, without what they ask for. CUPTI 13.0, whose host half works without a device: in
# the environment it would take the place of torch's. The model of examples/perception.py: its package asks for
# pytorch3d, which has to be compiled and which the model does without. Where one cannot be fetched, its tests skip.
build/cupti-13.0/.fetched: BESIDE = nvidia-cuda-cupti==13.0.*
build/torchdrive/.fetched: BESIDE = torchdrive==0.0.1
build/cupti-13.0/.fetched build/torchdrive/.fetched: | $(VENV)/.created
	$(say) "fetching $(BESIDE) for a test"
	@rm -rf $(@D)
	@$(BIN)/python -m pip install --quiet --no-deps --only-binary :all: --target $(@D) '$(BESIDE)' && touch $@ || \
	  echo '$(BESIDE) cannot be fetched: its tests are skipped'

# gcc's thread sanitizer stops where the system spreads addresses more widely than it knows; setarch switches that off.
FIXED_ADDRESSES = $(if $(shell setarch -R true 2>/dev/null && echo works),setarch -R)

# The rooms whose tests are run; the thread sanitizer has nothing to see where there is one thread.
# make sanitize-asan SANITIZED="core ops" takes those alone.
SANITIZED_asan = core ops join analysis json kineto report rule observe nvidia device cupti run profiler
SANITIZED_tsan = observe nvidia device cupti run profiler
sanitized = $(or $(SANITIZED),$(SANITIZED_$*))
space = $(subst ,, )

sanitize: sanitize-asan sanitize-tsan  ## the C++ tests under the address, undefined-behaviour and thread sanitizers

.PHONY: sanitize-asan sanitize-tsan
sanitize-asan sanitize-tsan: sanitize-%: $(VENV)/.has-requires
	$(say) "C++ tests under the sanitizers of preset $*"
	@$(BIN)/cmake --preset $* -DPython_EXECUTABLE=$(abspath $(BIN)/python) -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING
	$(BIN)/cmake --build --preset $* --target $(sanitized:%=test_%)
	$(FIXED_ADDRESSES) $(BIN)/ctest --preset $* -R '^($(subst $(space),|,$(sanitized)))$$'

# clang 14, the oldest that the README names, is Debian 12's clang++; make clang CLANG=clang++-19 takes another.
CLANG ?= clang++
clang: $(VENV)/.has-requires  ## the C++ library and the examples, compiled with clang, warnings as errors
	$(say) "the library and the examples with $(CLANG)"
	$(BIN)/cmake -S . -B build/$(CLANG) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING \
	  -DCMAKE_CXX_COMPILER=$(CLANG) -DCMAKE_BUILD_TYPE=Debug -DROOFPROF_WARNINGS_AS_ERRORS=ON -DROOFPROF_TESTS=OFF \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	$(BIN)/cmake --build build/$(CLANG)
	$(BIN)/cmake --install build/$(CLANG) --prefix build/$(CLANG)/installed > /dev/null
	$(BIN)/cmake -S examples/cpp -B build/$(CLANG)/examples -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING \
	  -DCMAKE_CXX_COMPILER=$(CLANG) -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" \
	  -DCMAKE_PREFIX_PATH=$(abspath build/$(CLANG)/installed)
	$(BIN)/cmake --build build/$(CLANG)/examples

bench: build $(VENV)/.has-bench  ## overhead, memory and speed beside other tools (minutes)
	$(say) "benchmarks"
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/count_llama.py
	$(BIN)/python benchmarks/memory.py
	@$(MAKE) --no-print-directory bench-cpp

# benchmarks/peers.md anew, with the originals that the integrations' requirements have and whichever else is installed.
.PHONY: peers
peers: build $(VENV)/.has-integrations  ## other tools beside roofprof.compat, written to benchmarks/peers.md
	$(say) "other tools beside what roofprof has in their place"
	$(BIN)/python benchmarks/peers.py --write benchmarks/peers.md

bench-cpp: $(VENV)/.has-bench  ## what profiling costs a C++ program, beside torch's own profiler
	$(say) "building the C++ benchmarks"
	$(BIN)/cmake -S . -B $(BUILD) -DROOFPROF_BENCHMARKS=ON
	$(BIN)/cmake --build $(BUILD) --target bench_overhead
	$(BIN)/python benchmarks/cpp/save_resnet18.py $(BUILD)/resnet18.pt
	$(BUILD)/benchmarks/cpp/bench_overhead --resnet18=$(BUILD)/resnet18.pt $(BENCH_ARGS)

# ---- lint

CPP_FILES := $(shell find csrc tests examples benchmarks -name '*.h' -o -name '*.cpp')
TIDY_HEADERS := $(shell find csrc -name '*.h' -o -name '*.def' -o -name '*.inl')
# What the compiler is given: several sources of a room together (torch's headers take longer than all that is ours), or one.
TIDY_UNITS = $(shell sed -n 's|^ *"file": "$(CURDIR)/\(.*\)",|\1|p' build/lint/compile_commands.json 2>/dev/null)

lint: lint-format lint-python lint-types lint-tidy  ## clang-format, ruff, mypy, clang-tidy

.PHONY: lint-format lint-python lint-types lint-tidy
lint-format: $(VENV)/.has-lint
	$(say) "clang-format"
	@$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)

lint-python: $(VENV)/.has-lint
	$(say) "ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lint-types: $(VENV)/.has-lint python/roofprof/_C.pyi
	$(say) "mypy"
	@$(BIN)/mypy

# Of the extension as it was built last. The build writes them, too.
python/roofprof/_C.pyi: cmake/write_stubs.py $(wildcard python/roofprof/_*.so) | $(VENV)/.has-lint
	@test -n "$(filter %.so,$^)" || $(MAKE) --no-print-directory build
	$(say) "type stubs"
	@$(BIN)/python cmake/write_stubs.py python/roofprof

lint-tidy: $(VENV)/.has-lint build/lint/compile_commands.json
	$(say) "clang-tidy"
	@$(MAKE) --no-print-directory --silent -j$(JOBS) lint-tidy-units

.PHONY: lint-tidy-units
lint-tidy-units: $(TIDY_UNITS:%=build/tidy/%.ok)

# A unit is looked at again when one of its sources, a header or the settings changed.
.SECONDEXPANSION:
build/tidy/%.ok: % $$(shell sed -n 's|^.include "$(CURDIR)/\(.*\)"|\1|p' $$*) $(TIDY_HEADERS) .clang-tidy
	@mkdir -p $(@D)
	@echo 'clang-tidy $<'
	@$(BIN)/clang-tidy --quiet -p build/lint $<
	@touch $@

# Written by CMake, which leaves it untouched when nothing in it changes. A folder changes when sources come or go.
build/lint/compile_commands.json: CMakeLists.txt $(wildcard cmake/*.cmake) $(shell find csrc -type d) | $(VENV)/.has-requires
	$(say) "configuring"
	ROOFPROF_BUILD_DIR=build/lint CMAKE_ARGS=-DROOFPROF_UNITY=ON $(BIN)/python setup.py -q build_ext --configure-only
	@touch $@

format: $(VENV)/.has-lint  ## clang-format and ruff, in place
	@$(BIN)/clang-format -i $(CPP_FILES)
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

clean:  ## remove what was built (.venv stays: it is slow to bring back)
	rm -rf build dist out python/roofprof/*.pyi python/roofprof/_C*.so python/roofprof/_report*.so python/roofprof/_build_info.py python/roofprof/lib \
	  python/roofprof/include python/roofprof/share python/*.egg-info .mypy_cache .pytest_cache .ruff_cache
