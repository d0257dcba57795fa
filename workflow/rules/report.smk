# report: one page over the whole run.


rule report:
    input:
        code=code("report"),
        policies=[policy(v) for v in range(RUN.versions + 1)],
        evals=evals(),
        credit=[f"{RESULTS}/credit/version={v}/part-0.parquet" for v in range(RUN.versions)],
    output:
        page=report(f"{RESULTS}/report.html", caption="../report/page.rst", category="Run"),
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.jsonl"
    conda:
        ENVIRONMENT
    params:
        flags=flags("report"),
    localrule: True
    shell:
        STAGE + ".report page {RESULTS} --out {output.page} {params.flags} > {log} 2>&1"
