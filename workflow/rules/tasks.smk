# tasks: import a source, run its references in the sandbox, admit those that score 1.0, split by hash.
# A benchmark goes the same way, without a split.


rule tasks_import:
    input:
        data_files(RUN.tasks.source),
    output:
        candidates=f"{RESULTS}/import/candidates.parquet",
    log:
        f"{RESULTS}/logs/tasks_import.log",
    benchmark:
        f"{RESULTS}/benchmarks/tasks_import.jsonl"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("tasks", "data/starter.jsonl"),
        seed=RUN.seed,
        flags=flags("tasks"),
    shell:
        STAGE
        + ".tasks import --out {output.candidates} --seed {params.seed} {params.flags} > {log} 2>&1"


rule benchmark_import:
    input:
        lambda wildcards: data_files(
            RUN.evaluate.benchmarks[wildcards.benchmark]
            .tasks(wildcards.benchmark)
            .source
        ),
    output:
        candidates=f"{RESULTS}/import/{{benchmark}}/candidates.parquet",
    log:
        f"{RESULTS}/logs/benchmark_import/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/benchmark_import/{{benchmark}}.jsonl"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("tasks"),
        seed=RUN.seed,
        flags=lambda wildcards: shlex.join(
            flags_for(
                RUN.evaluate.benchmarks[wildcards.benchmark].tasks(wildcards.benchmark)
            )
        ),
    shell:
        STAGE
        + ".tasks import --out {output.candidates} --seed {params.seed} {params.flags} > {log} 2>&1"


rule tasks_references:
    input:
        candidates="{folder}/candidates.parquet",
    output:
        verdicts="{folder}/verdicts.parquet",
        feedback="{folder}/feedback.parquet",
    log:
        "{folder}/references.log",
    benchmark:
        "{folder}/references.jsonl"
    wildcard_constraints:
        folder=rf"{RESULTS}/import(/[a-z][a-z0-9-]*)?",
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=grows(4000),
        runtime=grows(60),
    params:
        # a published benchmark stays whole
        hollow=lambda wildcards: (
            "--hollow" if wildcards.folder == f"{RESULTS}/import" else ""
        ),
        flags=flags("execute"),
    shell:
        STAGE
        + ".execute references --tasks {input.candidates} --verdicts {output.verdicts}"
        " --feedback {output.feedback} --workers {threads} {params.hollow} {params.flags} > {log} 2>&1"


if START:

    rule tasks_taken:
        input:
            train=f"{START}/tasks/split=train/part-0.parquet",
            heldout=f"{START}/tasks/split=heldout/part-0.parquet",
            rejected=f"{START}/rejected.parquet",
        output:
            train=split("train"),
            heldout=split("heldout"),
            rejected=f"{RESULTS}/rejected.parquet",
        log:
            f"{RESULTS}/logs/tasks_taken.log",
        benchmark:
            f"{RESULTS}/benchmarks/tasks_taken.jsonl"
        localrule: True
        conda:
            ENVIRONMENT
        shell:
            "(cp {input.train} {output.train} && cp {input.heldout} {output.heldout} &&"
            " cp {input.rejected} {output.rejected}) > {log} 2>&1"

else:

    rule tasks_admit:
        input:
            candidates=f"{RESULTS}/import/candidates.parquet",
            verdicts=f"{RESULTS}/import/verdicts.parquet",
            feedback=f"{RESULTS}/import/feedback.parquet",
        output:
            train=split("train"),
            heldout=split("heldout"),
            rejected=f"{RESULTS}/rejected.parquet",
        log:
            f"{RESULTS}/logs/tasks_admit.log",
        benchmark:
            f"{RESULTS}/benchmarks/tasks_admit.jsonl"
        localrule: True
        conda:
            ENVIRONMENT
        params:
            code=code("tasks"),
            share=RUN.tasks.heldout_share,
        shell:
            STAGE
            + ".tasks admit --candidates {input.candidates} --verdicts {input.verdicts} --feedback {input.feedback}"
            " --heldout-share {params.share} --train {output.train} --heldout {output.heldout}"
            " --rejected {output.rejected} > {log} 2>&1"


rule benchmark_admit:
    input:
        candidates=f"{RESULTS}/import/{{benchmark}}/candidates.parquet",
        verdicts=f"{RESULTS}/import/{{benchmark}}/verdicts.parquet",
        feedback=f"{RESULTS}/import/{{benchmark}}/feedback.parquet",
    output:
        tasks=f"{RESULTS}/tasks/split={{benchmark}}/part-0.parquet",
        rejected=f"{RESULTS}/import/{{benchmark}}/rejected.parquet",
    log:
        f"{RESULTS}/logs/benchmark_admit/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/benchmark_admit/{{benchmark}}.jsonl"
    wildcard_constraints:
        benchmark="(?!heldout/|train/)[a-z][a-z0-9-]*",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("tasks"),
    shell:
        STAGE
        + ".tasks admit --candidates {input.candidates} --verdicts {input.verdicts} --feedback {input.feedback}"
        " --all {output.tasks} --rejected {output.rejected} > {log} 2>&1"
