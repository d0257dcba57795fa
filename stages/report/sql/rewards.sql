-- Mean reward by version and turn, with 1.96 standard errors either way. Nodes of one task are alike, so the error is
-- that of a ratio over tasks: sqrt(T / (T - 1) * sum over tasks of (sum of (reward - mean))^2) / nodes.
with node as (
    select version, turn, task_id, reward, avg(reward) over (partition by version, turn) as mean
    from 'feedback/**/*.parquet'
    where reward is not null
), task as (
    select version, turn, task_id, count(*) as nodes, any_value(mean) as mean, sum(reward - mean) as apart
    from node
    group by all
)
select version, turn, count(*) as tasks, sum(nodes)::bigint as judged, any_value(mean) as mean_reward,
       case when count(*) > 1
            then 1.96 * sqrt(count(*) / (count(*) - 1) * sum(apart^2)) / sum(nodes) end as half_width
from task
group by all
order by all
