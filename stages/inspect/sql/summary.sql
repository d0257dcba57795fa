-- Each version and turn: nodes, solved, mean reward, kept nodes, sampled tokens.
with credit_of as (
    select version, turn, count(*) filter (where kept) as kept from 'credit/**/*.parquet' group by all
), tokens_of as (
    select version, turn, sum(len(completion_ids))::bigint as tokens from 'rollouts/**/*.parquet' group by all
)
select version, turn, count(*) as nodes, count(*) filter (where reward is null) as unjudged,
       count(*) filter (where reward = 1) as solved, avg(reward) as mean_reward,
       any_value(kept) as kept, any_value(tokens) as tokens
from 'feedback/**/*.parquet'
left join credit_of using (version, turn)
left join tokens_of using (version, turn)
group by all
order by version, turn
