-- The nodes of one task's trees.
select version, turn, node_id, parent_id, sample, len(completion_ids) as tokens,
       reward, passed, total, kind, credit, advantage, kept, prune_reason
from 'rollouts/**/*.parquet' as rollouts
left join (select version, turn, node_id, reward, passed, total, kind from 'feedback/**/*.parquet') as feedback
    using (version, turn, node_id)
left join (select version, node_id, credit, advantage, kept, prune_reason from 'credit/**/*.parquet') as credit
    using (version, node_id)
where task_id = $task
order by version, turn, len(node_id), node_id
