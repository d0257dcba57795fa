# credit: send reward back through a version's trees, prune, normalise inside groups. All SQL.


rule credit:
    input:
        rollouts=lambda wildcards: parts("rollouts", wildcards.version),
        feedback=lambda wildcards: parts("feedback", wildcards.version),
    output:
        credit=f"{RESULTS}/credit/version={{version}}/part-0.parquet",
        timings=f"{RESULTS}/timings/credit/version={{version}}.json",
    log:
        f"{RESULTS}/logs/credit/version={{version}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/credit/version={{version}}.jsonl"
    localrule: True
    conda:
        ENVIRONMENT
    threads: 8
    params:
        code=code("credit"),
        turns=RUN.turns,
        flags=flags("credit"),
    shell:
        STAGE
        + ".credit --rollouts {input.rollouts} --feedback {input.feedback} --turns {params.turns}"
        " --out {output.credit} --threads {threads} --timings {output.timings} {params.flags} > {log} 2>&1"
