-- attempts: every node of an evaluation's trees, with its tree's root and whether it is right.
-- Runs by hand in DuckDB, from a run's folder, before passes.sql and turns.sql and after, for instance,
--   create view task as from 'tasks/split=heldout/*.parquet';
--   create view node as from read_parquet('eval_rollouts/version=0/*/*.parquet', hive_partitioning = true);
--   create view judged as from 'eval_feedback/version=0/**/*.parquet';
create or replace temp table attempts as
with recursive tree as (
    select node_id, parent_id, node_id as root, task_id, sample, turn, finish_reason
    from node semi join task using (task_id)
    where parent_id is null
    union all
    select child.node_id, child.parent_id, tree.root, child.task_id, tree.sample, child.turn, child.finish_reason
    from node as child join tree on child.parent_id = tree.node_id
)
select
    tree.*,
    judged.kind,
    judged.reward is null as unjudged,
    -- Right is what passes every hidden test; a task without hidden tests is scored on all of them. What could not be
    -- judged is not right.
    judged.reward is not null and judged.total > 0
    and case when judged.hidden_total > 0 then judged.hidden_passed = judged.hidden_total
             else judged.passed = judged.total end as solved
from tree join judged using (node_id);
