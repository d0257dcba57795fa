# MURPHY as a Snakemake workflow: the stages of each policy version, from tasks to report.
#   snakemake --cores all                                             the run of config.yaml
#   snakemake --cores all --configfile workflow/configs/smoke.yaml    another run
#   snakemake --workflow-profile profiles/slurm                       on a cluster
import sys

from snakemake.utils import min_version

min_version("9.27")
sys.path.insert(0, workflow.basedir)


configfile: f"{workflow.basedir}/config.yaml"


include: "workflow/common.smk"


wildcard_constraints:
    version=r"\d+",
    turn=r"\d+",
    shard=r"\d+",
    benchmark=r"[a-z][a-z0-9-]*",


if RUN.compare.arms:

    include: "workflow/rules/compare.smk"

else:

    include: "workflow/rules/tasks.smk"
    include: "workflow/rules/policy.smk"
    include: "workflow/rules/generate.smk"
    include: "workflow/rules/execute.smk"
    include: "workflow/rules/credit.smk"
    include: "workflow/rules/update.smk"
    include: "workflow/rules/evaluate.smk"
    include: "workflow/rules/report.smk"


# Ctrl-C while the executor asks SLURM about its jobs, or submits one, would leave that job running.
onerror:
    cancel_slurm_jobs(log)


# Versions ascending, so that a long chain of them is planned a link at a time and not in one deep recursion.
rule all:
    default_target: True
    input:
        policies=(
            [] if RUN.compare.arms else [policy(v) for v in range(RUN.versions + 1)]
        ),
        evals=[] if RUN.compare.arms else evals(),
        report=f"{RESULTS}/report.html",
