-- One row per task and root sample of a benchmark: when its tree first passed every hidden test. After attempts.sql.
select
    task_id,
    sample,
    any_value(task.difficulty) as difficulty,
    count(*)::integer as attempts,
    (min(turn) filter (solved))::integer as solved_at,
    arg_min(attempts.kind, (turn, node_id)) as first_kind,
    arg_max(attempts.kind, (turn, node_id)) as last_kind
from attempts join task using (task_id)
group by task_id, root, sample
order by task_id, sample
