-- pass@1 at iteration k by difficulty, as a mean over the tasks of a difficulty.
with task as (
    select benchmark, version, k, coalesce(difficulty, 'unknown') as difficulty, task_id,
           avg((coalesce(solved_at, k + 1) <= k)::int) as p
    from 'evals/**/*.parquet', unnest(range(1, $iterations + 1)) as iterations(k)
    group by benchmark, version, k, difficulty, task_id
)
select benchmark, version, difficulty, k as iteration, count(*) as tasks, avg(p) as pass_at_1
from task
group by benchmark, version, difficulty, k
order by benchmark, version,
         list_position(['easy', 'medium', 'hard'], lower(difficulty)) nulls last, difficulty, iteration
