# generate: one turn of a version's rollout trees, sampled by one engine per shard.


rule generate:
    input:
        policy=lambda wildcards: policy(wildcards.version),
        tasks=split("train"),
        rollouts=earlier("rollouts"),
        feedback=earlier("feedback"),
    output:
        rollouts=f"{RESULTS}/rollouts/version={{version}}/turn={{turn}}/shard-{{shard}}.parquet",
        timings=f"{RESULTS}/timings/generate/version={{version}}/turn={{turn}}/shard-{{shard}}.json",
    log:
        f"{RESULTS}/logs/generate/version={{version}}/turn={{turn}}/shard-{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/generate/version={{version}}/turn={{turn}}/shard-{{shard}}.jsonl"
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
        flags=flags("generate"),
        policy=lambda wildcards, input: os.path.dirname(input.policy),
    shell:
        STAGE
        + ".generate --policy {params.policy} --tasks {input.tasks} --version {wildcards.version}"
        " --turn {wildcards.turn} --shard {wildcards.shard} --rollouts {input.rollouts} --feedback {input.feedback}"
        " --seed {params.seed} --stage-version {params.stage_version} {params.flags} "
        + GENERATE_CAPACITY
        + " --out {output.rollouts} --timings {output.timings} 2>&1 | tee {log}"
