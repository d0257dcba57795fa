-- pass@1 at iteration k: the share of chains whose attempt 1..k passed every hidden test, as a mean over tasks, with its
-- 95 % Wilson interval (each task counted as one observation).
with task as (
    select benchmark, version, k, task_id, count(*) as samples, avg((coalesce(solved_at, k + 1) <= k)::int) as p
    from 'evals/**/*.parquet', unnest(range(1, $iterations + 1)) as iterations(k)
    group by all
), mean as (
    select benchmark, version, k, count(*)::double as n, sum(samples)::bigint as chains, avg(p) as p
    from task
    group by all
)
select benchmark, version, k as iteration, n::bigint as tasks, chains, p as pass_at_1,
       (p + 1.96^2 / (2 * n) - 1.96 * sqrt(p * (1 - p) / n + 1.96^2 / (4 * n^2))) / (1 + 1.96^2 / n) as low,
       (p + 1.96^2 / (2 * n) + 1.96 * sqrt(p * (1 - p) / n + 1.96^2 / (4 * n^2))) / (1 + 1.96^2 / n) as high
from mean
order by benchmark, version, iteration
