-- What the update was given: nodes kept and pruned, and kept nodes that pull the policy somewhere (advantage not 0).
select version, turn, count(*) as nodes,
       count(*) filter (where kept) as kept,
       count(*) filter (where prune_reason = 'inter') as pruned_inter,
       count(*) filter (where prune_reason = 'intra') as pruned_intra,
       count(*) filter (where kept and advantage <> 0) as with_signal
from 'credit/**/*.parquet'
group by all
order by all
