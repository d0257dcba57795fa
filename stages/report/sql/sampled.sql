-- Tokens that were sampled, in training and in evaluation, by version and turn. A group's prompt is counted once, with
-- its first sample: siblings share it.
with node as (
    select 'training' as part, version, turn, sample, prompt_ids, completion_ids, finish_reason, code
    from 'rollouts/**/*.parquet'
    union all
    select 'evaluation' as part, version, turn, sample, prompt_ids, completion_ids, finish_reason, code
    from 'eval_rollouts/**/*.parquet'
)
select part, version, turn, count(*) as nodes,
       sum(len(completion_ids))::bigint as sampled_tokens,
       coalesce(sum(len(prompt_ids)) filter (where sample = 0), 0)::bigint as prompt_tokens,
       avg(len(completion_ids)) as mean_length,
       avg((finish_reason = 'length')::int) as cut_share,
       avg((code is null and finish_reason <> 'context_overflow')::int) as no_code_share,
       avg((finish_reason = 'context_overflow')::int) as overflow_share
from node
group by all
order by part desc, version, turn
