-- Nodes, solved nodes and mean reward by version and turn. Nodes that could not be judged have no reward: they count as
-- nodes, and in neither mean.
select version, turn, count(*) as nodes,
       count(*) filter (where reward is null) as unjudged,
       count(*) filter (where reward = 1) as solved,
       avg((reward = 1)::int) as solved_share,
       avg(reward) as mean_reward
from 'feedback/**/*.parquet'
group by all
order by all
