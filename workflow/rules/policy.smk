# policy: version 0, from a package, a folder, a hub, another run, or made on the spot.
FIRST = (
    RUN.policy.model_copy(update={"init": f"{START}/policies/version=0"})
    if START
    else RUN.policy
)


rule policy_init:
    input:
        tasks=split("train") if FIRST.init == "nano" else [],
        start=f"{START}/policies/version=0/manifest.json" if START else [],
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
        mem_mb=grows(6000),
        runtime=grows(60),
    params:
        seed=RUN.seed,
        flags=shlex.join(flags_for(FIRST)),
        nano=flags("nano") if FIRST.init == "nano" else "",
        tasks=lambda wildcards, input: f"--tasks {input.tasks}" if input.tasks else "",
        folder=lambda wildcards, output: os.path.dirname(output.manifest),
    shell:
        STAGE
        + ".policy --out {params.folder} --seed {params.seed} --timings {output.timings}"
        " {params.flags} {params.nano} {params.tasks} > {log} 2>&1"
