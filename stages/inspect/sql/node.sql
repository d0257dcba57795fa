-- One node, with everything that is known of it.
select version, turn, node_id, parent_id, task_id, sample, prompt, text, code, finish_reason,
       len(completion_ids) as tokens, policy_hash, seed,
       reward, passed, total, hidden_passed, hidden_total, kind, mode, feedback,
       credit, group_mean, group_std, advantage, kept, prune_reason
from 'rollouts/**/*.parquet' as rollouts
left join (select * exclude (task_id) from 'feedback/**/*.parquet') as feedback using (version, turn, node_id)
left join (select version, node_id, credit, group_mean, group_std, advantage, kept, prune_reason
           from 'credit/**/*.parquet') as credit using (version, node_id)
where node_id = $node
