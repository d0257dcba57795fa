# execute: run a turn's programs against their tests, in sandboxes.


rule execute:
    input:
        tasks=split("train"),
        rollouts=f"{RESULTS}/rollouts/version={{version}}/turn={{turn}}/shard-{{shard}}.parquet",
    output:
        verdicts=f"{RESULTS}/verdicts/version={{version}}/turn={{turn}}/shard-{{shard}}.parquet",
        feedback=f"{RESULTS}/feedback/version={{version}}/turn={{turn}}/shard-{{shard}}.parquet",
        test_times=f"{RESULTS}/test_times/version={{version}}/turn={{turn}}/shard-{{shard}}.parquet",
        timings=f"{RESULTS}/timings/execute/version={{version}}/turn={{turn}}/shard-{{shard}}.json",
    log:
        f"{RESULTS}/logs/execute/version={{version}}/turn={{turn}}/shard-{{shard}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/execute/version={{version}}/turn={{turn}}/shard-{{shard}}.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=grows(4000),
        runtime=grows(120),
    params:
        stage_version=1,
        flags=flags("execute"),
    shell:
        STAGE
        + ".execute run --tasks {input.tasks} --rollouts {input.rollouts} --verdicts {output.verdicts}"
        " --feedback {output.feedback} --test-times {output.test_times} --timings {output.timings}"
        " --workers {threads} {params.flags} > {log} 2>&1"
