# compare: the whole workflow once per arm and seed, each a module of its own, and a report over all of them.
# The first run makes the tasks and version 0; the others start from them.
for arm, seed in MEMBERS:
    one = f"{arm}_{seed}_".replace("-", "_")
    settings = merged(
        {key: value for key, value in config.items() if key != "compare"},
        RUN.compare.arms[arm],
        {
            "run": member(arm, seed),
            "seed": seed,
            "start": None if (arm, seed) == MEMBERS[0] else member(*MEMBERS[0]),
        },
    )
    try:
        check(settings)
    except UserError as error:
        raise WorkflowError(f"compare.arms.{arm}: {error}") from None

    module:
        name: one
        snakefile:
            f"{workflow.basedir}/Snakefile"
        config:
            settings

    use rule * from one exclude all as one*


rule compare_ends:
    input:
        pages=lambda wildcards: pages(BASELINE, wildcards.arm),
    output:
        found=f"{RESULTS}/compare/{{arm}}.json",
    log:
        f"{RESULTS}/logs/compare/{{arm}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/compare/{{arm}}.jsonl"
    wildcard_constraints:
        arm="[a-z][a-z0-9-]*",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("evaluate"),
        first=ends(BASELINE),
        second=lambda wildcards: ends(wildcards.arm),
    shell:
        STAGE
        + ".evaluate compare {params.first} {params.second} --json > {output.found} 2> {log}"


rule compare_report:
    input:
        pages=pages(*RUN.compare.arms),
        found=[
            f"{RESULTS}/compare/{arm}.json"
            for arm in RUN.compare.arms
            if arm != BASELINE
        ],
    output:
        page=report(
            f"{RESULTS}/report.html",
            caption="../report/compare.rst",
            category="Comparison",
        ),
        table=f"{RESULTS}/compare.json",
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.jsonl"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("report"),
        arms=[
            f"--arm {arm} "
            + " ".join(f"results/{member(arm, seed)}" for seed in RUN.compare.seeds)
            for arm in RUN.compare.arms
        ],
    shell:
        STAGE
        + ".report compare {params.arms} --compared {input.found} --out {output.page} --json {output.table} > {log} 2>&1"
