# Two commands matter: `make demo` and `make test`. Each makes its own environment on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAX_VENV := .venv-jax
TYPES_VENV := .venv-types
MPI_VENV := .venv-mpi
BROWSER_VENV := .venv-browser
JAX_VERSION := 0.10.2
MYPY_VERSION := 2.4.1
PLAYWRIGHT_VERSION := 1.65.2
CHROMIUM_VERSION := 147.0.0
PYRIGHT_VERSION := 1.1.414
INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-every test-interpreted test-null test-checked test-pythons test-machines test-targets coverage lint mypy types format same-bits neighbours calibrate bench clients interchange random-programs random-sharded random-exact random-transformations nested-closures random-vectors random-quality differential bench-numpy bench-overhead bench-batches bench-checks bench-progress bench-primitives accuracy attack compare-lax compare-libraries misuses bench-random compare-random extents clean

demo: $(VENV)/.has-demo    # train a classifier on handwritten digits
	$(BIN)/python examples/digits.py

test: $(VENV)/.has-test    # all tests, and every example in every docstring
	$(BIN)/python -m compileall -q -j 2 src/catena tests    # once, not in each of the processes
	$(BIN)/python -m pytest -n 2 --dist worksteal -q --assert=plain || $(EXPLAINED)

# What fails is run again with the values that an assertion compared. To rewrite all tests so that these are known takes
# each process as long as all else that it does before the first test.
EXPLAINED = { $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none --maxfail 20; exit 1; }

test-every: $(VENV)/.has-test    # the tests with all cases of the long tables of which `make test` tries a share; PART=k/n makes a part
	CATENA_EVERY_CASE=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(if $(PART),--part $(PART))

test-interpreted: $(VENV)/.has-test    # the tests as where there is no compiler; at the end, what was skipped and why; PART=k/n makes a part
	CATENA_COMPILER=none $(BIN)/python -m pytest -n 2 --dist worksteal -q -rs $(if $(PART),--part $(PART))

# About what only native code has: the words of its checks of bounds, its answer to Ctrl-C, its clocks.
NOT_ON_NULL := --ignore tests/compiler/test_bounds.py --ignore tests/compiler/test_interrupts.py \
	--ignore tests/compiler/test_subnormals.py

test-null: $(VENV)/.has-test    # the compiler's tests with programs interpreted in NumPy, half an hour: the oracle for what writes them
	CATENA_TEST_DEVICE=null $(BIN)/python -m pytest tests/compiler -n 2 --dist worksteal -q $(NOT_ON_NULL)

test-checked: $(VENV)/.has-test    # the tests with bounds checks in every load and store of compiled programs; PART=k/n makes a part
	CATENA_CHECK_BOUNDS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(if $(PART),--part $(PART))

.PHONY: test-mpi
test-mpi: $(MPI_VENV)/.has-mpi    # tests/mpi in 4 processes that work together, and processes that fail, hang and are killed; installs mpi4py and mpich
	$(MPI_VENV)/bin/mpiexec -n 4 $(MPI_VENV)/bin/python tests/mpi/run.py
	KILLS=$(or $(KILLS),3) $(MPI_VENV)/bin/python -m pytest -q --import-mode=importlib tests/mpi

# Processes that wait leave the processor to others.
YIELDING := CATENA_NUM_THREADS=1 CATENA_CACHE=0 MPIR_CVAR_ENABLE_HEAVY_YIELD=1
.PHONY: random-mpi
random-mpi: $(MPI_VENV)/.has-mpi    # random programs and partitioned ones in two processes of four devices, all in one job each; COUNT=1000, SEED=0
	$(YIELDING) $(MPI_VENV)/bin/mpiexec -n 2 $(MPI_VENV)/bin/python benchmarks/sharded_programs.py --executor mpi --count $(or $(COUNT),1000) --seed $(or $(SEED),0)
	$(YIELDING) $(MPI_VENV)/bin/mpiexec -n 2 $(MPI_VENV)/bin/python benchmarks/partitioned_programs.py --executor mpi --count $(or $(COUNT),1000) --seed $(or $(SEED),0)

.PHONY: bench-ranks
bench-ranks: $(MPI_VENV)/.has-mpi    # two processes of one thread beside one of two threads: the steps of three examples, on an idle machine; less than 85 % is an error; TURNS=10, ONLY=text
	$(MPI_VENV)/bin/python benchmarks/ranks.py --turns $(or $(TURNS),10) --only "$(ONLY)"

.PHONY: scaling
scaling: $(VENV)/.has-demo    # what three examples send on 2 to 1024 devices, and how they would scale; WRITE=1 writes docs/scaling.md
	$(BIN)/python benchmarks/scaling.py $(if $(WRITE),--write)

test-pythons:    # the tests on every Python from 3.11 on that the machine has, each with the newest dependencies, the first also with the oldest; ONLY=3.13 selects, PART=k/n makes a part
	$(PYTHON) benchmarks/elsewhere.py pythons --only "$(ONLY)" -- -n 2 $(if $(PART),--part $(PART))

test-machines: $(VENV)/.has-test    # the tests with NumPy and OpenBLAS set to other processors, on one thread, with other hashes, and under load; ONLY, PART likewise
	$(BIN)/python benchmarks/elsewhere.py machines --only "$(ONLY)" -- -n 2 $(if $(PART),--part $(PART))

test-targets: $(VENV)/.has-test    # the tests with machine code for processors of 2013 (AVX2) and of 2003 (SSE2); PART likewise
	CATENA_TARGET=x86-64-v3 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(if $(PART),--part $(PART))
	CATENA_TARGET=x86-64 $(BIN)/python -m pytest -n 2 --dist worksteal -q $(if $(PART),--part $(PART))

same-bits: $(VENV)/.has-test    # 24,000 calls again, laid out otherwise in memory, on 1 and 8 threads, cold and warm: the same bits
	$(BIN)/python benchmarks/same_bits.py --every 1 --write .same-bits.json
	CATENA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/same_bits.py --every 3 --against .same-bits.json
	CATENA_NUM_THREADS=8 OPENBLAS_NUM_THREADS=8 CATENA_CACHE=0 $(BIN)/python benchmarks/same_bits.py --every 3 --against .same-bits.json

neighbours: $(VENV)/.has-test    # sums, extremes and products of many shapes, alone, behind other operations, beside other results, under vmap: the same bits; ONLY=text selects
	$(BIN)/python benchmarks/neighbours.py --only "$(ONLY)"

calibrate: $(VENV)/.has-test    # NumPy, loops and programs beside each other, and where lax/policy.py is not the best choice here; ONLY=text selects
	$(BIN)/python benchmarks/calibrate.py --only "$(ONLY)"

coverage: $(VENV)/.has-coverage    # which lines and branches of the source tests reach, below a floor an error; PART=k/n adds a part to what was reached before, REPORT=1 sums up
	$(if $(REPORT),,$(BIN)/python -m coverage run $(if $(PART),--append) -m pytest -q $(if $(PART),--part $(PART)))
	$(BIN)/python -m coverage report $(if $(PART),--fail-under=0)

lint: $(VENV)/.has-test mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy: $(VENV)/.has-test $(TYPES_VENV)/.has-checkers    # core, transform and compiler, as pyproject.toml says; `make lint` runs it too
	$(TYPES_VENV)/bin/mypy --python-executable $(BIN)/python

types: $(VENV)/.has-test $(TYPES_VENV)/.has-checkers    # what a type checker says of users' programs
	PATH="$(abspath $(TYPES_VENV))/bin:$$PATH" $(BIN)/python -m pytest -q tests/house/test_types.py

format: $(VENV)/.has-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # compiled programs beside JAX; ONLY=text selects, LONG=1 adds the longest, WRITE=1 writes docs/benchmarks.md and draws docs/benchmark_history.md
	$(BIN)/python benchmarks/compiler.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)" $(if $(LONG),--long) $(if $(WRITE),--write)

random-programs: $(VENV)/.has-demo    # 2000 random programs: compiled = eager, the same bits on one thread and on two
	$(BIN)/python benchmarks/random_programs.py

random-sharded: $(VENV)/.has-demo    # 1000 random programs for one device of random meshes: sharded = unsharded, values and gradients
	$(BIN)/python benchmarks/sharded_programs.py

random-exact: $(VENV)/.has-demo    # 1000 random programs of exact operations over every dtype: compiled = eager, bit for bit
	$(BIN)/python benchmarks/random_exact_programs.py

random-transformations: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # 5000 random programs through eight modes beside JAX, an hour of two cores the first time; COUNT, SEED and MINUTES make less
	$(BIN)/python benchmarks/random_transformations.py --jax-python $(JAX_VENV)/bin/python $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: random-lengths
random-lengths: $(VENV)/.has-demo    # random programs at seven lengths each: plans of other lengths = compiled alone, bit for bit; MINUTES=5, SEED=0
	$(BIN)/python benchmarks/random_lengths.py $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

.PHONY: usual-lengths
usual-lengths: $(VENV)/.has-demo    # eighty functions that users call at many lengths, likewise; two minutes; ONLY=text, SEED=0
	$(BIN)/python benchmarks/usual_lengths.py --only "$(ONLY)" $(if $(SEED),--seed $(SEED))

.PHONY: random-nests
random-nests: $(VENV)/.has-test $(JAX_VENV)/.has-jax    # random functions within functions, on integers, truths and empty arrays too, through grad, vmap, jit, scan, while, cond and rules, beside JAX: values, dtypes, weak types, errors; MINUTES=5, SEED=0
	$(BIN)/python benchmarks/random_nests.py --jax-python $(JAX_VENV)/bin/python --minutes $(or $(MINUTES),5) --seed $(or $(SEED),0)

nested-closures: $(VENV)/.has-test $(JAX_VENV)/.has-jax    # 17,797 programs of transformations within transformations whose bodies close over tracers, beside JAX; ONLY=text
	$(BIN)/python benchmarks/nested_closures.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)"

random-vectors: $(VENV)/.has-test    # all 2,241 draws that were recorded from JAX, two minutes; the tests draw a part of them
	CATENA_EVERY_CASE=1 $(BIN)/python -m pytest -n 2 -q tests/random/test_vectors.py

random-quality: $(VENV)/.has-test    # statistical tests of every generator; writes docs/random_quality.md
	$(BIN)/python benchmarks/random_quality.py --write

clients: $(VENV)/.has-demo    # libraries written for JAX, from their wheels, on JAX and on catena; ONLY=text, TESTS=1 runs their own tests instead (LEFT=1 those that are left, SHARE=2/24 a share), WRITE=1 writes docs/ecosystem.md
	$(BIN)/python benchmarks/ecosystem.py --only "$(ONLY)" $(if $(TESTS),--tests) $(if $(LEFT),--left) $(if $(SHARE),--share $(SHARE)) $(if $(WRITE),--write)

interchange: $(VENV)/.has-demo    # arrays to and from PyTorch, pandas, scikit-learn, SciPy ..., beside JAX; the namespace beside the array API standard's
	$(BIN)/python benchmarks/interchange.py
	build/clients/catena/bin/python benchmarks/array_api.py

bench-random: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # draws beside JAX; PART=draws, samplers, first or reuse selects
	$(BIN)/python benchmarks/sampling.py --jax-python $(JAX_VENV)/bin/python $(if $(PART),--part $(PART))

compare-random: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # what every sampler draws, and says, beside JAX; ONLY=text selects
	$(BIN)/python benchmarks/differential_random.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)"

differential: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # 15,000 calls of the NumPy API, the same in JAX, half an hour; EVERY=10 makes a tenth, ONLY=name those of a function
	$(BIN)/python benchmarks/differential_numpy.py --jax-python $(JAX_VENV)/bin/python $(if $(EVERY),--every $(EVERY)) $(if $(ONLY),--only $(ONLY))

extents: $(VENV)/.has-test    # every public function at sizes 0 and 1, with 40 axes, and with 2**31 + 8 elements; PART=axes|empty|large, ONLY=name
	$(BIN)/python benchmarks/extents.py $(if $(PART),--part $(PART)) $(if $(ONLY),--only $(ONLY))

bench-numpy: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # what 200 calls of the NumPy API cost beside JAX, then sort, median ... of a million
	$(BIN)/python benchmarks/numpy_overhead.py --jax-python $(JAX_VENV)/bin/python
	$(BIN)/python benchmarks/numpy_overhead.py --jax-python $(JAX_VENV)/bin/python --large

bench-overhead: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # side by side with JAX, printed as ratios
	$(BIN)/python benchmarks/overhead.py --jax-python $(JAX_VENV)/bin/python

.PHONY: bench-eager
bench-eager: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # every public function on a few elements, called eagerly, beside JAX, worst first; ONLY=text, LEAST=6: only what takes us so many microseconds
	$(BIN)/python benchmarks/eager.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)" --least $(or $(LEAST),0)
	$(BIN)/python benchmarks/eager.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)" --large

bench-batches: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # the first call at one batch size after another, beside JAX
	$(BIN)/python benchmarks/batches.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)"

.PHONY: bench-functions
bench-functions: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # every function of mathematics and its gradient, jitted, beside JAX, what is slower at the end; ONLY=erf,logit selects, SIZES=1000,1000000, DTYPES=float32
	$(BIN)/python benchmarks/functions.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)" $(if $(SIZES),--sizes $(SIZES)) $(if $(DTYPES),--dtypes $(DTYPES))

bench-progress: $(VENV)/.has-demo    # what a live bar costs a loop: less than 1 % of its time
	$(BIN)/python benchmarks/progress.py

bench-checks: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # what checks cost: index checks on gathers, NaN checks on chains, beside JAX's checkify; too much is an error; ONLY=text selects
	$(BIN)/python benchmarks/checks.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)"

bench-primitives: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # every primitive evaluated eagerly beside JAX, at 1e6 elements, worst first; SIZE=1e3, ONLY=text selects
	$(BIN)/python benchmarks/primitives.py --jax-python $(JAX_VENV)/bin/python $(if $(SIZE),--size $(SIZE)) --only "$(ONLY)"

.PHONY: bench-search
bench-search: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # random programs slower than in JAX, shrunk, worst first; what earlier searches found comes first; MINUTES=10, SEED=0, FLOOR=1.0, CORPUS=1 for those alone, KEEP=1 keeps what is found
	$(BIN)/python benchmarks/search.py --jax-python $(JAX_VENV)/bin/python --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0) --floor $(or $(FLOOR),1.0) $(if $(CORPUS),--corpus) $(if $(KEEP),--keep)

accuracy: $(VENV)/.has-test $(JAX_VENV)/.has-jax    # errors of the elementwise functions in ulps, beside JAX's; writes docs/accuracy.md; COUNT=3000 arguments, ONLY=text selects and writes nothing, but ONLY=special. writes docs/accuracy_special.md
	$(BIN)/python benchmarks/accuracy.py --jax-python $(JAX_VENV)/bin/python $(if $(COUNT),--count $(COUNT)) --only "$(ONLY)"

attack: $(VENV)/.has-demo    # a thousand attacks by threads, forks, signals, a hostile cache and inputs, too little memory, sizes beyond machines; ONLY=family selects
	PYTHONPATH=benchmarks $(BIN)/python -m attack --only "$(ONLY)"

compare-lax: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # what 4000 good calls of lax return and 800 bad ones raise, beside JAX; ONLY=text selects
	$(BIN)/python benchmarks/differential_lax.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)"

.PHONY: compare-traces
compare-traces: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # what 590 functions are made of, beside JAX: primitives in order, and their parameters, none of which may be missing; ONLY=text selects
	$(BIN)/python benchmarks/traces.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)"

.PHONY: pages
pages: $(VENV)/.has-demo $(BROWSER_VENV)/.has-browser    # pages of profiles in headless Chromium: screenshots of five programs beside those that are kept, then keyboard and mouse, sizes and times of eight; installs playwright, and Chromium by npm unless BROWSER=path names one; KEEP=1 keeps the screenshots from now on
	$(BROWSER_VENV)/bin/python benchmarks/screenshots.py $(LOOKING) $(if $(KEEP),--keep)
	$(BROWSER_VENV)/bin/python benchmarks/pages.py $(LOOKING)

misuses: $(VENV)/.has-demo    # 307 recorded misuses replayed: types of errors as in JAX, messages that say name, expected, got and line; ONLY=text selects
	$(BIN)/python benchmarks/misuses.py --only "$(ONLY)"

compare-libraries: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # calls of scipy, nn, image and other libraries beside JAX, and their gradients; ONLY=pattern, PART=k/n select, X64=1 makes them in double precision
	$(BIN)/python benchmarks/differential_libraries.py --jax-python $(JAX_VENV)/bin/python --only "$(ONLY)" $(if $(PART),--part $(PART)) $(if $(X64),--x64)

.PHONY: compare-slopes
compare-slopes: $(VENV)/.has-demo    # derivatives of the same libraries beside finite differences, forward, and backward beside forward; ONLY=pattern selects
	$(BIN)/python benchmarks/finite_differences.py --only "$(ONLY)"

.PHONY: compare-partition random-partitioned
compare-partition: $(VENV)/.has-demo $(JAX_VENV)/.has-jax    # what partitioned programs send between devices, beside JAX's compiled text
	$(BIN)/python benchmarks/partition.py --jax-python $(JAX_VENV)/bin/python

random-partitioned: $(VENV)/.has-demo    # 1000 random programs of whole arrays on random meshes: partitioned = whole, values and gradients
	$(BIN)/python benchmarks/partitioned_programs.py

# Chromium as npm has it is packed, and unpacks itself into the folder of temporary files when it is asked where it is.
ASK_CHROMIUM := import("@sparticuz/chromium").then(found => found.default.executablePath()).then(console.log)
FIND_CHROMIUM := cd $(BROWSER_VENV)/npm && TMPDIR="$$PWD" node -e '$(ASK_CHROMIUM)'
LOOKING = --catena-python $(BIN)/python --browser "$(or $(BROWSER),$$($(FIND_CHROMIUM)))"

clean:
	rm -rf $(VENV) $(JAX_VENV) $(TYPES_VENV) $(MPI_VENV) $(BROWSER_VENV) build .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps inside the environments say what is installed there: a second run starts at once, and an environment
# that is deleted is made anew.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("catena needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What pip would compile, file by file, on one core: a third as long without the tests of others, and on two.
COMPILE = $(BIN)/python -m compileall -qq -j 2 -x '/tests/' $(VENV)/lib || true

$(VENV)/.has-demo: pyproject.toml $(VENV)/.made
	$(BIN)/python $(INSTALL) --no-compile --editable '.[demo]'
	$(COMPILE)
	@touch $@

$(VENV)/.has-test: pyproject.toml $(VENV)/.made
	$(BIN)/python $(INSTALL) --no-compile --editable '.[test,demo]'
	$(COMPILE)
	@touch $@

$(VENV)/.has-coverage: $(VENV)/.has-test
	$(BIN)/python $(INSTALL) --editable '.[test,demo,coverage]'
	@touch $@

$(TYPES_VENV)/.has-checkers: Makefile
	$(PYTHON) -m venv $(TYPES_VENV)
	$(TYPES_VENV)/bin/python $(INSTALL) mypy==$(MYPY_VERSION) pyright==$(PYRIGHT_VERSION)
	@touch $@

$(BROWSER_VENV)/.has-browser: Makefile
	$(PYTHON) -m venv $(BROWSER_VENV)
	$(BROWSER_VENV)/bin/python $(INSTALL) playwright==$(PLAYWRIGHT_VERSION)
	$(if $(BROWSER),,npm install --silent --no-audit --no-fund --prefix $(BROWSER_VENV)/npm @sparticuz/chromium@$(CHROMIUM_VERSION))
	@touch $@

$(MPI_VENV)/.has-mpi: pyproject.toml
	$(PYTHON) -m venv $(MPI_VENV)
	$(MPI_VENV)/bin/python $(INSTALL) --editable '.[test,demo,mpi]'
	@touch $@

$(JAX_VENV)/.has-jax: Makefile
	$(PYTHON) -m venv $(JAX_VENV)
	$(JAX_VENV)/bin/python $(INSTALL) jax==$(JAX_VERSION) scikit-learn matplotlib
	@touch $@
