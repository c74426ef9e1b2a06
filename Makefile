# make demo: the whole pipeline on a generated corpus.  make test: all tests.  Both install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SNAKE := Snakefile workflow/Snakefile workflow/rules/*.smk

.PHONY: demo test check format lock slurm clean

demo: $(READY)
	@NERPROBE_BOARD=no $(BIN)/snakemake --cores all --configfile config/demo.yaml; code=$$?; \
	$(BIN)/nerprobe show --configfile config/demo.yaml && exit $$code

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/snakefmt --check $(SNAKE)
	$(BIN)/snakemake --lint
	$(BIN)/snakemake --snakefile workflow/Snakefile --lint

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt $(SNAKE)

# What profiles/slurm needs.
slurm: $(READY)
	$(BIN)/python -m pip install --quiet --requirement envs/slurm.txt

# Pins what is installed; run it in a fresh environment after changing pyproject.toml.
lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable | sed -e 's/+cpu//' > requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nerprobe needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $(READY)

clean:
	rm -rf $(VENV) .snakemake
