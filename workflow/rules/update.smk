# update: one GRPO update makes policy version v + 1 out of version v and its credited trees.
# One rule per version: the table of updates is named by the version trained from, the policy by the one that results.
for v in range(RUN.versions):

    rule:
        name:
            f"update_{v}"
        input:
            policy=policy(v),  # first: a long chain of versions is planned without deep recursion
            credit=f"{RESULTS}/credit/version={v}/part-0.parquet",
            rollouts=parts("rollouts", v),
            reference=(
                [policy(0 if RUN.update.reference == "initial" else max(v - 1, 0))]
                if RUN.update.beta > 0
                else []
            ),
        output:
            policy=policy(v + 1),
            updates=f"{RESULTS}/updates/version={v}/part-0.parquet",
            timings=f"{RESULTS}/timings/update/version={v}.json",
        log:
            f"{RESULTS}/logs/update/version={v}.log",
        benchmark:
            f"{RESULTS}/benchmarks/update/version={v}.jsonl"
        conda:
            ENVIRONMENT
        threads: 8
        resources:
            **({"gpu": RUN.update.processes} if GPUS else {}),
            mem_mb=grows(HOST_MB),
            runtime=grows(240),
        params:
            stage_version=1,
            version=v,
            seed=RUN.seed,
            temperature=RUN.generate.temperature,
            max_tokens=RUN.generate.max_tokens,
            flags=flags("update"),
            work=f"{RESULTS}/work/update/version={v}",
            folder=lambda wildcards, input: os.path.dirname(input.policy),
            out=lambda wildcards, output: os.path.dirname(output.policy),
            reference=lambda wildcards, input: (
                f"--reference-policy {os.path.dirname(input.reference)}"
                if input.reference
                else ""
            ),
        shell:
            STAGE
            + ".update --policy {params.folder} --credit {input.credit} --rollouts {input.rollouts}"
            " --out {params.out} --updates {output.updates} --version {params.version} --seed {params.seed}"
            " --temperature {params.temperature} --max-tokens {params.max_tokens} --work {params.work}"
            " --timings {output.timings} --threads {threads} --device "
            + RUN.device
            + " {params.flags} "
            + UPDATE_CAPACITY
            + " {params.reference} 2>&1 | tee {log}"
