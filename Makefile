# make demo    train SmolLM2-135M for two policy versions, on a CPU, and print what came of it
# make test    the tests
# make test-slurm    a run on a real SLURM of one node, started for it; Debian and root, see docs/cluster.md
# Both set up .venv when it is missing or old. Needs Python >= 3.11, make and a C compiler; no root.
PYTHON ?= python3
# pip options that find the CPU build of torch; elsewhere than on a machine that has it, PyTorch's CPU wheel index:
#   make setup TORCH="--extra-index-url <the CPU index named on pytorch.org's install page>"
TORCH ?=
CORES ?= all
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SLURM_PLUGIN := build/slurm
SLURM_PACKAGES := slurmctld slurmd slurm-client munge

.PHONY: setup demo smoke test test-fast test-learning test-slurm slurm-installed chromium-installed faults plan-time lint lock clean

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
	$(BIN)/python -m pytest -m "not learning"

test-fast: $(READY)
	$(BIN)/python -m pytest -m "not slow"

test-learning: $(READY)
	$(BIN)/python -m pytest -s -m learning

# $(call installed,commands,Debian packages): whether the commands are there, after installing them where that may be done.
define installed
@PATH=$$PATH:/usr/sbin; missing=; for one in $(1); do command -v $$one > /dev/null || missing="$$missing $$one"; done; \
if [ -z "$$missing" ]; then exit 0; fi; \
if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then \
  echo "missing:$$missing; as root on Debian: apt-get install --no-install-recommends $(2)"; exit 1; fi; \
apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(2) > /dev/null
endef

slurm-installed:
	$(call installed,slurmctld slurmd sbatch munged,$(SLURM_PACKAGES))

chromium-installed:
	$(call installed,chromium,chromium)

$(SLURM_PLUGIN)/.ready: envs/slurm.lock $(READY)
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(SLURM_PLUGIN) -r envs/slurm.lock
	@touch $@

# Whatever hangs is ended: the daemons die with pytest.
test-slurm: slurm-installed $(SLURM_PLUGIN)/.ready
	MURPHY_TEST_SLURM=1 PYTHONPATH=$(CURDIR)/$(SLURM_PLUGIN) timeout -k 20 900 $(BIN)/python -m pytest tests/test_slurm.py

# Faults at 100 seeded moments of a run; goes on where it was stopped.
faults: $(READY)
	$(BIN)/python -m tests.faults --moments 100 --seed 0 --folder build/faults

# How long the plan of 200 versions x 3 turns x 8 shards takes.
plan-time: $(READY)
	$(BIN)/python -m benchmarks.plan

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow

# Rewrites the lock from what is installed, after an upgrade that was tried out by hand.
lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable | grep -v -e '^torchvision' -e '^torchaudio' -e '^triton' > envs/cpu.lock

clean:
	rm -rf $(VENV) .snakemake/log build *.egg-info
