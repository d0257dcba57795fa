# evaluate: iteration-k pass@1. The generate and execute stages again, on tasks the policy was not trained on; an
# engine serves all benchmarks of a version's turn.


rule eval_generate:
    input:
        policy=lambda wildcards: policy(wildcards.version),
        tasks=[split(name) for name in benchmarks()],
        rollouts=lambda wildcards: evaluated_parts(
            "rollouts", wildcards.version, range(1, int(wildcards.turn))
        ),
        feedback=lambda wildcards: evaluated_parts(
            "feedback", wildcards.version, range(1, int(wildcards.turn))
        ),
    output:
        rollouts=f"{RESULTS}/eval_rollouts/version={{version}}/turn={{turn}}/part-0.parquet",
        timings=f"{RESULTS}/timings/eval_generate/version={{version}}/turn={{turn}}.json",
    log:
        f"{RESULTS}/logs/eval_generate/version={{version}}/turn={{turn}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/eval_generate/version={{version}}/turn={{turn}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        **GPUS,
        mem_mb=grows(HOST_MB),
        runtime=grows(240),
    params:
        stage_version=1,
        seed=RUN.seed,
        limits=[
            limit if limit is not None else "none" for limit in benchmarks().values()
        ],
        flags=lambda wildcards: flags(
            "generate",
            group_size=RUN.evaluate.samples if wildcards.turn == "1" else 1,
            temperature=RUN.evaluate.temperature,
            tasks_per_version=None,
            tokens_per_version=None,
            shards=1,
        ),
        policy=lambda wildcards, input: os.path.dirname(input.policy),
    shell:
        STAGE
        + ".generate --policy {params.policy} --tasks {input.tasks} --limit {params.limits}"
        " --version {wildcards.version} --turn {wildcards.turn} --rollouts {input.rollouts}"
        " --feedback {input.feedback} --seed {params.seed} --stage-version {params.stage_version} {params.flags} "
        + GENERATE_CAPACITY
        + " --out {output.rollouts} --timings {output.timings} 2>&1 | tee {log}"


rule eval_execute:
    input:
        tasks=[split(name) for name in benchmarks()],
        rollouts=f"{RESULTS}/eval_rollouts/version={{version}}/turn={{turn}}/part-0.parquet",
    output:
        verdicts=f"{RESULTS}/eval_verdicts/version={{version}}/turn={{turn}}/part-0.parquet",
        feedback=f"{RESULTS}/eval_feedback/version={{version}}/turn={{turn}}/part-0.parquet",
        test_times=f"{RESULTS}/eval_test_times/version={{version}}/turn={{turn}}/part-0.parquet",
        timings=f"{RESULTS}/timings/eval_execute/version={{version}}/turn={{turn}}.json",
    log:
        f"{RESULTS}/logs/eval_execute/version={{version}}/turn={{turn}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/eval_execute/version={{version}}/turn={{turn}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=grows(4000),
        runtime=grows(120),
    params:
        stage_version=1,
        flags=flags("execute", feedback_from=RUN.evaluate.feedback_from),
    shell:
        STAGE
        + ".execute run --tasks {input.tasks} --rollouts {input.rollouts} --verdicts {output.verdicts}"
        " --feedback {output.feedback} --test-times {output.test_times} --timings {output.timings}"
        " --workers {threads} {params.flags} > {log} 2>&1"


rule evaluate:
    input:
        tasks=lambda wildcards: split(wildcards.benchmark),
        rollouts=lambda wildcards: evaluated_parts(
            "rollouts", wildcards.version, range(1, RUN.evaluate.iterations + 1)
        ),
        feedback=lambda wildcards: evaluated_parts(
            "feedback", wildcards.version, range(1, RUN.evaluate.iterations + 1)
        ),
    output:
        evals=f"{RESULTS}/evals/benchmark={{benchmark}}/version={{version}}/part-0.parquet",
    log:
        f"{RESULTS}/logs/evaluate/{{benchmark}}/version={{version}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/evaluate/{{benchmark}}/version={{version}}.jsonl"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("evaluate"),
    shell:
        STAGE
        + ".evaluate passes --tasks {input.tasks} --rollouts {input.rollouts} --feedback {input.feedback}"
        " --out {output.evals} > {log} 2>&1"
