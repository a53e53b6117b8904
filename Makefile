# The two commands a user needs: `make demo` and `make test`. Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
JUDGE := $(BIN)/evenhand judge
RUNS := runs/demo

.PHONY: setup test demo lint bench lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(READY)

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest

demo: setup
	$(BIN)/evenhand model get qwen2.5-coder-1.5b
	$(JUDGE) examples/doc-qa.jsonl --rubric doc-qa --variant detail=anchors --judge local --no-reason --fresh --out $(RUNS)/doc-qa
	$(JUDGE) examples/hhh.jsonl --rubric hhh --judge local --no-reason --no-re-ask --fresh --out $(RUNS)/hhh
	$(JUDGE) examples/critic.jsonl --rubric alignmm-critic --judge local --no-reason --fresh --out $(RUNS)/critic
	for run in doc-qa hhh critic; do $(BIN)/evenhand report $(RUNS)/$$run --out $(RUNS)/$$run.html; done

bench: setup
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/kill.py
	$(BIN)/python benchmarks/shards.py --rows 100000
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/agreement.py
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/ray_engine.py
	$(BIN)/python benchmarks/prefix.py
	$(BIN)/python benchmarks/local.py

lock: setup
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra bedrock --extra frames --extra local --extra prices --extra ray --extra report --group browser --group dev --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet -o requirements.lock

clean:
	rm -rf .venv build dist
