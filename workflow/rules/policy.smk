# policy: version 0, from a package, a folder, a hub, or made on the spot.


rule policy_init:
    input:
        tasks=split("train") if RUN.policy.init == "nano" else [],
    output:
        manifest=policy(0),
        timings=f"{RESULTS}/timings/policy/version=0.json",
    log:
        f"{RESULTS}/logs/policy_init.log",
    benchmark:
        f"{RESULTS}/benchmarks/policy_init.jsonl"
    conda:
        ENVIRONMENT
    threads: 8
    resources:
        mem_mb=6000,
        runtime=60,
    params:
        seed=RUN.seed,
        flags=flags("policy"),
        nano=flags("nano") if RUN.policy.init == "nano" else "",
        tasks=lambda wildcards, input: f"--tasks {input.tasks}" if input.tasks else "",
        folder=lambda wildcards, output: os.path.dirname(output.manifest),
    shell:
        STAGE
        + ".policy --out {params.folder} --seed {params.seed} --timings {output.timings}"
        " {params.flags} {params.nano} {params.tasks} > {log} 2>&1"
