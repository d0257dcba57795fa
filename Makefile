# make demo    train SmolLM2-135M for two policy versions, on a CPU, and print what came of it
# make test    the tests
# Both set up .venv when it is missing or old. Needs Python >= 3.11, make and a C compiler; no root.
PYTHON ?= python3
# pip options that find the CPU build of torch; elsewhere than on a machine that has it, PyTorch's CPU wheel index:
#   make setup TORCH="--extra-index-url <the CPU index named on pytorch.org's install page>"
TORCH ?=
CORES ?= all
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo smoke test test-fast lint lock clean

setup: $(READY)

$(READY): envs/cpu.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Murphy needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps $(TORCH) -r envs/cpu.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

demo: $(READY)
	$(BIN)/snakemake --cores $(CORES)
	@$(BIN)/python -m stages.report summary results/demo
	@echo "report: results/demo/report.html"

smoke: $(READY)
	$(BIN)/snakemake --cores $(CORES) --configfile workflow/configs/smoke.yaml
	@$(BIN)/python -m stages.report summary results/smoke
	@echo "report: results/smoke/report.html"

test: $(READY)
	$(BIN)/python -m pytest

test-fast: $(READY)
	$(BIN)/python -m pytest -m "not slow"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow

# Rewrites the lock from what is installed, after an upgrade that was tried out by hand.
lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable | grep -v -e '^torchvision' -e '^torchaudio' -e '^triton' > envs/cpu.lock

clean:
	rm -rf $(VENV) .snakemake/log build *.egg-info
