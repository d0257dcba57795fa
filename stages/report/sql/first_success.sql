-- At which attempt chains were first right; never is NULL.
select benchmark, version, solved_at as attempt, count(*) as chains,
       count(*) / sum(count(*)) over (partition by benchmark, version) as share
from 'evals/**/*.parquet'
group by benchmark, version, solved_at
order by benchmark, version, attempt nulls last
