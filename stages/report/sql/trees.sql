-- The trees there are, with what tells them apart.
select version, task_id, count(*) as nodes, max(turn) as turns, min(turn) filter (where reward = 1) as solved_in,
       count(*) filter (where turn = 1 and reward = 1) as roots_solved, count(*) filter (where turn = 1) as roots
from '$feedback/**/*.parquet'
group by all
order by all
