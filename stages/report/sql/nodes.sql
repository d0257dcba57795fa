-- The nodes of the chosen trees, with all that is known of each.
select version, task_id, turn, node_id, parent_id, sample, prompt, text, code, finish_reason, len(completion_ids) as tokens,
       reward, passed, total, hidden_passed, hidden_total, kind, mode, feedback,
       credit, advantage, group_mean, group_std, kept, prune_reason
from (select * from '$rollouts/**/*.parquet' semi join chosen using (version, task_id)) as rollouts
left join (select * exclude (task_id) from '$feedback/**/*.parquet') as feedback using (version, turn, node_id)
left join (select version, node_id, credit, advantage, group_mean, group_std, kept, prune_reason from '$credit/**/*.parquet')
    as credit using (version, node_id)
order by version, task_id, turn, node_id
