# make demo      run the demonstration
# make check     lint, types, layers and the fast tests, in a minute or two: while you work
# make test      lint, types, layers, doctests and tests (what CI runs)
# make test-all  the same with the slow tests and many more drawn examples
# make verify    draw cases of every property for MINUTES=30, going on where it stopped, and write docs/verification.md
# make wheel     a wheel for this platform, with compiled kernels, in dist
# make security  fuzzing, known vulnerabilities and licences of the dependencies; part of test-all
# make lint      lint, types and layers only
# make format    rewrite the sources in the project's format
# make bench     run all experiments and publish them (MINUTES=30); goes on where it stopped
# make bench-smoke    does every experiment work? No times are kept; what needs rivals is left out
# make bench-rivals   set up the engines that are compared with, under build/rivals
# make spark-versions a batch, a stream and SQL on each version of PySpark that is allowed
# make docs      build the documentation as a site in build/site
# make clean     remove everything that was built

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
READY := .venv/.ready
CORE := .venv/.core

# Spark starts its Python workers with this interpreter; without it they would be the system's, which lacks the packages.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# Where the environment forbids to write bytecode, every process compiles every module that it imports: 3 s each time.
export PYTHONDONTWRITEBYTECODE :=

MINUTES ?= 30

.PHONY: demo check fast test test-plain test-local test-spark test-all browser security lint format spark-versions verify bench bench-smoke bench-rivals docs clean tools kernels wheel
.DELETE_ON_ERROR:

demo: tools
	@$(BIN)/cepheid demo

# Drawn cases of the engines and of some runners (DRAWN) run as plain Python, where each costs milliseconds, and a few of
# them compiled, where each new query costs a compilation. Long streams (*_large.py), fitting (test_learn.py) and searches
# that are stopped (test_stop.py) are for the compiled pass only. Compiled, `make test` runs the contract of all engines
# and what is about compiling itself, `make test-all` everything.
# All run beside each other, so that no core waits: for the last kernel to be compiled, or for the JVM, as tests on
# Spark do half of the time. What is checked and run as plain Python needs no kernels, and begins before they are there.
# The kernels have one core for themselves, where what they share is compiled once: they begin when there is what they
# need, before pip has the rest, and what runs beside them is nice to them, since most tests wait for them. Tests of one
# Spark session have one process: a second JVM would have to get warm, too.
# Kernels of the benchmarks' baselines, which would be compiled for a few small tests, run as plain Python, too.
DRAWN := $(addprefix tests/runners/test_,incremental_steps.py composition.py) tests/benchmarks/test_baselines.py
COMPILED := contract jit_fallback stop numba_insides lazy_large runs_large learn compressed totals maximal value_index
PYTEST := $(BIN)/pytest -n $(JOBS)
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync)
test: $(CORE)
	@$(MAKE) --no-print-directory $(SYNC) -j 3 KERNELS=--alone NICE='nice -n 10' kernels tools lint test-plain test-spark test-local

test-plain: $(READY)
	NUMBA_DISABLE_JIT=1 CEPHEID_TEST_PROFILE=plain $(NICE) $(PYTEST) --ignore-glob='*_large.py' --ignore-glob='*_learn.py' \
		--ignore=tests/engine/test_stop.py tests/engine $(DRAWN)

test-local: $(READY) kernels
	$(PYTEST) --ignore=tests/engine --ignore=tests/spark $(DRAWN:%=--ignore=%)
	CEPHEID_TEST_PROFILE=compiled $(PYTEST) $(COMPILED:%=tests/engine/test_%.py)

test-spark: $(READY) kernels
	$(BIN)/pytest tests/spark

# For the inner loop: everything as plain Python, so that no kernel need be compiled after a change, and no Spark.
FAST := src $(addprefix tests/,language plan rows flink runners test_source.py test_wording.py test_errors.py) \
	$(addprefix tests/engine/test_,sequence.py runs.py negation.py engines.py)
check: tools
	@$(MAKE) --no-print-directory $(SYNC) -j 2 lint fast

fast: $(READY)
	NUMBA_DISABLE_JIT=1 CEPHEID_TEST_PROFILE=plain $(PYTEST) -m "not slow and not spark" $(FAST)

# Tests of Spark have processes of their own: their JVM has to start in the zone that they are for. Those of pages need
# Chromium and its driver, which is said before an hour has passed.
browser:
	@command -v chromedriver >/dev/null || { echo "test-all drives pages in a browser: install Chromium and chromedriver (Debian: apt-get install chromium chromium-driver)"; exit 1; }

test-all: browser $(READY) lint kernels security
	$(BIN)/pytest -n $(JOBS) -m "" --ignore=tests/engine --ignore=tests/spark
	CEPHEID_KILLS=100 $(BIN)/pytest -n $(JOBS) -m "" tests/spark
	NUMBA_DISABLE_JIT=1 CEPHEID_TEST_PROFILE=all $(BIN)/pytest -n $(JOBS) -m "" --ignore-glob='*_large.py' tests/engine
	CEPHEID_TEST_PROFILE=compiled $(BIN)/pytest -n $(JOBS) -m "" --ignore=tests/engine/test_contract.py tests/engine
	CEPHEID_TEST_PROFILE=compiled-all $(BIN)/pytest -n $(JOBS) tests/engine/test_contract.py tests/engine/test_drawn_expressions.py

# Properties first, then cells of the matrix in memory and on Spark; what is found is in build/verification.
verify: $(READY) kernels
	@$(BIN)/python tests/verification/run.py --minutes $$(($(MINUTES) / 2)); failed=$$?; \
	$(BIN)/python tests/verification/fill.py --minutes $$(($(MINUTES) / 4)) || failed=1; \
	$(BIN)/python tests/verification/fill.py --minutes $$(($(MINUTES) / 4)) --spark || failed=1; \
	$(BIN)/python tests/verification/page.py; exit $$failed

# What needs a tool or a network that is not there is left out, with a word. Licences are told by their short name (SPDX)
# or, by older packages, by their classifier.
REFUSED := GPL-3.0-only;GPL-3.0-or-later;AGPL-3.0-only;AGPL-3.0-or-later;GNU General Public License v3 (GPLv3);GNU General Public License v3 or later (GPLv3+);GNU Affero General Public License v3;GNU Affero General Public License v3 or later (AGPLv3+)
security: $(READY)
	$(BIN)/python -m bench.fuzz --minutes 1
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt pip-audit pip-licenses || true
	@if [ -x $(BIN)/pip-audit ]; then told=$$($(BIN)/pip-audit --local --progress-spinner off 2>&1); rc=$$?; \
	skipped=$$(printf '%s\n' "$$told" | grep -c 'could not be audited'); \
	if printf '%s\n' "$$told" | grep -q '^Found'; then printf '%s\n' "$$told"; exit 1; \
	elif [ $$rc -ne 0 ]; then echo "known vulnerabilities were not looked up: no network"; \
	elif [ $$skipped -gt 0 ]; then echo "known vulnerabilities of $$skipped dependencies were not looked up: not known where this machine asks"; \
	else echo "no known vulnerabilities"; fi; \
	else echo "known vulnerabilities were not looked up: pip-audit could not be installed"; fi
	@if [ -x $(BIN)/pip-licenses ]; then $(BIN)/pip-licenses --fail-on '$(REFUSED)' >/dev/null; \
	else echo "licences were not looked up: pip-licenses could not be installed"; fi

# The kernels are for a baseline processor (engine/kernels/cache.py); one that lacks it compiles its own.
wheel: $(READY)
	@rm -rf build/kernels
	@NUMBA_CACHE_DIR=build/kernels $(BIN)/python -m cepheid.engine.precompile --baseline
	@CEPHEID_KERNELS=build/kernels/cepheid $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

kernels: $(CORE)
	@$(BIN)/python -m cepheid.engine.precompile $(KERNELS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --quiet --check .
	$(NICE) $(BIN)/mypy --strict src
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in build/site: open build/site/index.html in a browser; its search works from disk."

# One query on each version of PySpark that the extra allows, each in a folder of its own; needs the package index.
spark-versions: tools
	for version in 4.0 4.1 4.3; do \
		$(BIN)/pip install --quiet --no-deps --target build/spark-$$version "pyspark==$$version.*" && \
		PYTHONPATH=build/spark-$$version:tests SPARK_HOME=$(CURDIR)/build/spark-$$version/pyspark $(BIN)/python tests/versions/spark_smoke.py || exit 1; \
	done

bench: tools
	$(BIN)/python -m bench full --minutes $(MINUTES)

bench-smoke: tools
	$(BIN)/python -m bench smoke --without rivals

bench-rivals: tools
	$(BIN)/python -m bench rivals

# One line that says which Python and which Java will be used.
tools: $(READY)
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	if version=$$("$$java" -version 2>&1); then java=$$(printf '%s\n' "$$version" | sed -n 's/.* version "\([^"]*\)".*/Java \1/p'); \
	else java="no Java found: install Java 17 or newer (Debian: openjdk-17-jre-headless) for everything that uses Spark"; fi; \
	printf '%s, %s\n' "$$($(BIN)/python --version)" "$$java"

# What kernels need first, then the rest. Without --no-compile pip compiles 9,000 modules, of which few are ever imported,
# for a third of its time.
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cepheid needs Python 3.11 or newer; name one with: make PYTHON=python3.11 ...")'
	@echo "Building .venv from constraints.txt (some minutes the first time) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) -e .
	@touch $@

$(READY): $(CORE)
	@$(INSTALL) -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
