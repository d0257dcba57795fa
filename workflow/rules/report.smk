# report: one page over the whole run.


rule report:
    input:
        policies=[policy(v) for v in range(RUN.versions + 1)],
        evals=evals(),
        credit=[
            f"{RESULTS}/credit/version={v}/part-0.parquet" for v in range(RUN.versions)
        ],
    output:
        page=report(
            f"{RESULTS}/report.html", caption="../report/page.rst", category="Run"
        ),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.jsonl"
    localrule: True
    conda:
        ENVIRONMENT
    params:
        code=code("report"),
        run=lambda wildcards, output: os.path.dirname(output.page),
        flags=flags("report"),
    shell:
        STAGE
        + ".report page {params.run} --out {output.page} {params.flags} > {log} 2>&1"
