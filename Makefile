# Short names for what people do with a checkout; each target makes .venv first when it is missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo ui test lint docs bench clean

demo: .venv/ready
	$(BIN)/ringside demo

ui: .venv/ready
	$(BIN)/ringside ui

test: .venv/dev-ready
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder || \
	{ test $$? -eq 1 && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -v; }

lint: .venv/dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/ringside presets render --check

docs: .venv/ready
	$(BIN)/ringside presets render
	$(BIN)/python docs/generate.py

bench: .venv/dev-ready
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/events.py

clean:
	rm -rf .venv dist build artefacts .mypy_cache .ruff_cache .pytest_cache

# torch and torchvision go into one call, so that pip chooses versions that fit each other.
.venv/ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	touch $@

.venv/dev-ready: .venv/ready
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@
