"""The run's configuration: one model per stage.

The models are the single source: the flags of each stage's command line and ``workflow/schemas/config.schema.json``
are made from them (``python -m stages.common.check --schema``). Every section is the settings of one stage, so that a
change in one section re-runs that stage and what follows it, and nothing else.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


def _field(default: object, text: str, tracked: bool = True, **limits: object) -> object:
    """A key with its default and its line of help; an untracked one says how much fits, and changes no numbers."""
    return Field(default, description=text, json_schema_extra=None if tracked else {"tracked": False}, **limits)


class Section(BaseModel):
    """A section of the configuration: unknown keys are refused, values are not guessed."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Tasks(Section):
    """Where tasks come from and how they are split."""

    source: str = _field(
        "starter", "starter, humaneval, mbpp, kodcode, generated, a local file, or a hub data set's name"
    )
    format: Literal["auto", "murphy", "humaneval", "mbpp", "kodcode", "livecodebench", "bigcodebench"] = _field(
        "auto", "format of a local file or hub data set; auto looks at its fields"
    )
    hub_split: str = _field("train", "split of a hub data set")
    limit: Count | None = _field(None, "take this many tasks, chosen by hash of their ids; none takes all")
    difficulty: list[str] = _field([], "keep only tasks of these difficulties; empty keeps all")
    released_from: Day | None = _field(None, "keep tasks released on this day or later (YYYY-MM-DD; livecodebench)")
    released_until: Day | None = _field(None, "keep tasks released on this day or before")
    wording: Literal["instruct", "complete"] = _field(
        "instruct", "bigcodebench: ask in words, or with the code to complete"
    )
    heldout_share: Share = _field(0.2, "share of the tasks held out for evaluation, by hash of the task id")


class Nano(Section):
    """A small policy made on the spot: its own tokenizer, warm-started by supervised training on generated tasks."""

    hidden: Count = _field(256, "hidden size")
    layers: Count = _field(6, "transformer layers")
    heads: Count = _field(4, "attention heads")
    steps: Count = _field(300, "supervised training steps")
    lr: Positive = _field(2e-3, "learning rate of the warm start")


class Policy(Section):
    """Version 0."""

    init: str = _field("smollm2-135m", "smollm2-135m, nano, a local Hugging Face folder, or a hub id")


class Generate(Section):
    """Sampling rollout trees; see stages/generate."""

    group_size: Count = _field(4, "G: completions sampled from each prompt")
    tasks_per_version: Count | None = _field(
        16, "tasks drawn for each policy version, no repeats until all were used; none takes all"
    )
    tokens_per_version: Count | None = _field(
        None, "open no more groups once a version has sampled about so many tokens; none is no limit"
    )
    temperature: Annotated[float, Field(ge=0)] = _field(0.8, "sampling temperature")
    top_p: Annotated[float, Field(gt=0, le=1)] = _field(
        1.0, "nucleus sampling; below 1 the engine correction must be off"
    )
    top_k: int = _field(0, "sample from the k likeliest tokens; 0 is off", ge=0)
    max_tokens: Count = _field(256, "longest completion")
    max_model_len: Count = _field(
        2048, "longest prompt plus completion; a prompt that leaves no room is context_overflow"
    )
    history: Literal["latest", "whole"] = _field("latest", "what a later turn reads: the latest attempt or all of them")
    attempt: Literal["code", "text"] = _field(
        "code", "an earlier attempt in a later prompt: its code alone or its whole text"
    )
    thinking: Literal["strip", "keep"] = _field("strip", "<think> blocks of earlier attempts in later prompts")
    instruction: str | None = _field(None, "a system message; none leaves the chat template's own")
    shards: Count = _field(1, "parts of a turn, one engine each: as many as there are devices")
    batch: Literal["all", "group"] = _field(
        "all", "sampled together: all prompts, fast; or a prompt's own completions, the same bytes for any shards"
    )
    dtype: Literal["float32", "bfloat16", "float16", "auto"] = _field("float32", "weights in the engine")
    tensor_parallel_size: Count = _field(1, "GPUs per engine", tracked=False)
    gpu_memory_utilization: Share = _field(0.85, "share of GPU memory the engine takes", tracked=False)
    kv_cache_gib: Count = _field(2, "key-value cache on a CPU, GiB", tracked=False)
    max_num_seqs: Count = _field(128, "completions sampled together", tracked=False)


class Execute(Section):
    """Running code in sandboxes; see docs/execute.md."""

    cpu_seconds: Positive = _field(4.0, "CPU time of one test; a task's own limit comes first")
    wall_factor: Annotated[float, Field(ge=1)] = _field(3.0, "wall time allowed, times cpu_seconds")
    memory_mb: Annotated[int, Field(ge=64)] = _field(1024, "address space of a candidate's process")
    output_kb: Count = _field(
        8192, "most that a program may print or return, KB; twice what is expected where that is more"
    )
    processes: Count = _field(24, "processes and threads of a candidate")
    open_files: Annotated[int, Field(ge=16)] = _field(64, "open files of a candidate")
    tmp_mb: Count = _field(32, "size of /tmp inside the sandbox")
    packages: list[str] = _field([], "packages that candidates may import beside the standard library")
    sandbox: Literal["zygote", "bwrap"] = _field(
        "zygote", "zygote: fresh namespaces out of a warm process, fast; bwrap: a new bwrap per program"
    )
    python: str = _field("environment", "interpreter inside: environment, system, or a path")
    feedback_tokens: Count = _field(256, "longest feedback, in tokens of about 4 characters; head and tail are kept")
    feedback_from: Literal["visible", "all"] = _field("visible", "tests that feedback may quote")
    infra_error_share: Share = _field(0.02, "the stage fails when more of its nodes could not be judged")


class Credit(Section):
    """Credit, pruning and advantages; see docs/credit.md."""

    strategy: Literal["mars", "mers", "own"] = _field("mars", "how reward goes back through the tree")
    gamma: Share = _field(0.9, "mers: weight of the children's mean")
    normalise: Literal["per_turn", "none"] = _field("per_turn", "mers: divide by the turns that were left")
    prune: Literal["none", "inter", "intra", "inter+intra"] = _field("none", "which nodes are left out of the update")
    rank_by: Literal["credit", "reward"] = _field("credit", "what pruning looks at")
    inter_groups: Count = _field(4, "inter: groups kept per task and turn (b)")
    intra_nodes: Annotated[int, Field(ge=2)] = _field(4, "intra: siblings kept per group (m)")
    stats_over: Literal["kept", "all"] = _field("kept", "nodes that a group's mean and std are taken over")
    scale: Literal["group", "batch", "none"] = _field("group", "standard deviation that advantages are divided by")


class Update(Section):
    """The GRPO step; see docs/update.md."""

    loss: Literal["grpo", "bnpo", "dapo", "dr_grpo", "gspo", "cispo"] = _field("dapo", "loss, see docs/update.md")
    lr: Positive = _field(1e-6, "peak learning rate")
    warmup_steps: int = _field(0, "optimiser steps of linear warm-up, counted over all versions", ge=0)
    schedule: Literal["constant", "linear", "cosine"] = _field("constant", "learning rate after the warm-up")
    schedule_steps: Count | None = _field(None, "steps until a falling schedule reaches 0; needed by linear and cosine")
    weight_decay: Annotated[float, Field(ge=0)] = _field(0.0, "AdamW weight decay")
    beta1: Share = _field(0.9, "AdamW beta 1")
    beta2: Share = _field(0.999, "AdamW beta 2")
    max_grad_norm: Positive = _field(1.0, "gradient clipping by global norm")
    epochs: Count = _field(1, "passes over the kept nodes of a version")
    minibatches: Count = _field(1, "optimiser steps per pass")
    eps: Annotated[float, Field(ge=0)] = _field(0.2, "clip range below 1")
    eps_high: Annotated[float, Field(ge=0)] | None = _field(None, "clip range above 1; none takes eps")
    delta: Positive | None = _field(None, "upper bound on the ratio before clipping; none is off")
    importance_level: Literal["token", "sequence"] = _field("token", "ratio per token or per completion")
    beta: Annotated[float, Field(ge=0)] = _field(0.0, "weight of the KL to the reference; 0 loads no reference")
    kl_bias_correction: bool = _field(True, "multiply the KL estimate by the ratio")
    reference: Literal["initial", "previous"] = _field("initial", "policy that KL is taken to, when beta > 0")
    target_kl: Positive | None = _field(None, "stop a version's update early above this KL to its start; none is off")
    is_correction: Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] = _field(
        "token_truncate", "correction of engine against trainer log-probabilities"
    )
    is_max: Positive = _field(2.0, "upper bound of the correction")
    is_min: Annotated[float, Field(ge=0)] = _field(0.0, "lower bound of the correction")
    mask_truncated: bool = _field(False, "leave completions out that ran into max_tokens")
    tokens_per_batch: Count = _field(2048, "tokens per forward pass; memory follows it, numbers do not", tracked=False)
    logits_chunk: Count = _field(128, "positions whose logits exist at one time", tracked=False)
    gradient_checkpointing: bool = _field(False, "recompute activations in the backward pass", tracked=False)
    dtype: Literal["float32", "bfloat16"] = _field(
        "float32", "the trainer's arithmetic; weights and moments stay float32"
    )
    processes: Count = _field(1, "processes that share the update's work, one per GPU", tracked=False)
    lora_rank: int = _field(0, "train LoRA adapters of this rank; 0 trains all weights", ge=0)
    lora_alpha: Positive = _field(32.0, "LoRA scaling")


class Benchmark(Section):
    """Tasks that policies are evaluated on: the keys of `tasks` that say where they come from."""

    source: str | None = _field(None, "as tasks.source; none takes the benchmark's own name")
    format: Tasks.model_fields["format"].annotation = _field("auto", "as tasks.format")
    hub_split: str = _field("test", "split of a hub data set")
    difficulty: list[str] = _field([], "keep only tasks of these difficulties; empty keeps all")
    released_from: Day | None = _field(None, "keep tasks released on this day or later (YYYY-MM-DD; livecodebench)")
    released_until: Day | None = _field(None, "keep tasks released on this day or before")
    wording: Literal["instruct", "complete"] = _field("instruct", "as tasks.wording")
    limit: int | None = _field(None, "evaluate this many tasks; none takes all, 0 leaves the benchmark out", ge=0)

    def tasks(self, name: str) -> Tasks:
        """The settings to import it with."""
        given = self.model_dump(exclude={"limit", "source"})
        return Tasks(**given, source=self.source or name, limit=self.limit or None)


class Evaluate(Section):
    """Iteration-k evaluation."""

    versions: Literal["ends", "last", "all", "none"] = _field("ends", "policy versions evaluated: first and last, ...")
    iterations: Annotated[int, Field(ge=1, le=10)] = _field(3, "attempts k a policy has, with feedback in between")
    samples: Count = _field(1, "chains per task")
    temperature: Annotated[float, Field(ge=0)] = _field(0.0, "0 is greedy")
    feedback_from: Literal["visible", "all"] = _field(
        "visible", "tests that feedback between attempts may quote; all is the protocol of some papers, and easier"
    )
    benchmarks: dict[Name, Benchmark] = _field({}, "by name; heldout is the run's own held-out tasks")

    @model_validator(mode="after")
    def _names(self) -> "Evaluate":
        own = self.benchmarks.get("heldout", Benchmark())
        if own != Benchmark(limit=own.limit):
            raise ValueError("evaluate.benchmarks.heldout: only limit can be set; its tasks come from the run's own")
        if "train" in self.benchmarks:
            raise ValueError("evaluate.benchmarks.train: that name is the training tasks'; choose another")
        return self


class Report(Section):
    """The HTML page."""

    trees: int | None = _field(
        200, "whole trees to read in the page, shared evenly among versions; none takes all", ge=0
    )


class Compare(Section):
    """Several runs from one version 0, and a report that compares them; see docs/compare.md."""

    arms: dict[Name, dict] = _field({}, "runs to compare: what each changes in this configuration; first the baseline")
    seeds: list[int] = _field([0], "each arm is run with each of these seeds")


class Config(Section):
    """A whole run."""

    device: Literal["cpu", "gpu"] = _field(
        "cpu", "what generate and update run on: picks envs/*.yaml and asks for GPUs"
    )
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = _field("run", "results go to results/<run>/")
    seed: int = _field(0, "seed of everything that is drawn", ge=0)
    start: str | None = _field(None, "name of a run whose tasks and version 0 this one takes; none makes its own")
    versions: Count = _field(2, "policy updates; may be raised later, the run goes on")
    turns: Count = _field(2, "S: attempts in a tree, the first included")
    tasks: Tasks = Tasks()
    policy: Policy = Policy()
    nano: Nano = Nano()
    generate: Generate = Generate()
    execute: Execute = Execute()
    credit: Credit = Credit()
    update: Update = Update()
    evaluate: Evaluate = Evaluate()
    report: Report = Report()
    compare: Compare = Compare()

    @model_validator(mode="after")
    def _fits_together(self) -> "Config":
        if (self.generate.top_p < 1 or self.generate.top_k) and self.update.is_correction != "none":
            raise ValueError(
                "generate.top_p < 1 or top_k > 0 with update.is_correction on: the engine's log-probabilities are then "
                "over fewer tokens than the trainer's and their ratio is wrong; set top_p: 1.0 and top_k: 0, or "
                "is_correction: none"
            )
        if self.generate.group_size < 2:
            raise ValueError("generate.group_size must be at least 2: an advantage compares the siblings of a group")
        if self.generate.temperature == 0:
            raise ValueError("generate.temperature must be above 0: greedy siblings are all alike")
        if self.generate.max_tokens >= self.generate.max_model_len:
            raise ValueError("generate.max_tokens must be below generate.max_model_len, which counts the prompt too")
        if self.update.loss == "cispo" and self.update.eps_high is None:
            raise ValueError("update.loss: cispo needs update.eps_high, its upper bound on the ratio (5.0 is usual)")
        if self.update.schedule != "constant" and self.update.schedule_steps is None:
            raise ValueError(f"update.schedule: {self.update.schedule} needs update.schedule_steps")
        if "intra" in self.credit.prune and self.credit.intra_nodes > self.generate.group_size:
            raise ValueError("credit.intra_nodes is above generate.group_size, so nothing would be pruned")
        return self
