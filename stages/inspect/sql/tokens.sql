-- Length of completions by version and turn, and how many were cut or held no code.
select version, turn, count(*) as nodes, sum(len(completion_ids))::bigint as tokens,
       avg(len(completion_ids)) as mean_length, median(len(completion_ids)) as median_length,
       max(len(completion_ids)) as longest, max(len(prompt_ids)) as longest_prompt,
       count(*) filter (where finish_reason = 'length') as cut,
       count(*) filter (where finish_reason = 'context_overflow') as overflow,
       count(*) filter (where code is null) as no_code
from 'rollouts/**/*.parquet'
group by all
order by all
