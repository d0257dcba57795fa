-- One row per task and root sample of a benchmark: when its tree first passed every hidden test.
-- Runs by hand in DuckDB, from a run's folder, after (for instance)
--   create view task as from 'tasks/split=heldout/*.parquet';
--   create view node as from read_parquet('eval_rollouts/version=0/*/*.parquet', hive_partitioning = true);
--   create view judged as from 'eval_feedback/version=0/**/*.parquet';
with recursive tree as (
    select node_id, node_id as root, task_id, sample, turn from node where parent_id is null
    union all
    select child.node_id, tree.root, child.task_id, tree.sample, child.turn
    from node as child join tree on child.parent_id = tree.node_id
),
attempt as (
    select
        tree.*,
        judged.kind,
        -- A task without hidden tests is scored on all of them. What could not be judged does not count as solved.
        judged.reward is not null
        and case when judged.hidden_total > 0 then judged.hidden_passed = judged.hidden_total
                 else judged.passed = judged.total end as solved
    from tree join judged using (node_id)
)
select
    task.task_id,
    attempt.sample,
    any_value(task.difficulty) as difficulty,
    count(*)::integer as attempts,
    (min(attempt.turn) filter (attempt.solved))::integer as solved_at,
    arg_min(attempt.kind, (attempt.turn, attempt.node_id)) as first_kind,
    arg_max(attempt.kind, (attempt.turn, attempt.node_id)) as last_kind
from attempt join task using (task_id)
group by all
order by all
