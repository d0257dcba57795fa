-- The share of tasks with a solved node in turns 1..s of their trees: what feedback adds to a first attempt.
with task as (
    select version, task_id, min(turn) filter (where reward = 1) as solved_in from 'feedback/**/*.parquet' group by all
), turn as (
    select distinct version, turn from 'feedback/**/*.parquet'
)
select version, turn.turn, count(*) as tasks, count(*) filter (where solved_in <= turn.turn) as solved,
       avg((coalesce(solved_in, turn.turn + 1) <= turn.turn)::int) as share
from task join turn using (version)
group by all
order by all
