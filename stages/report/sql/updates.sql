-- The optimiser steps of each version. Means are over steps; `tokens` are completion tokens in the loss.
select version, count(*) as steps, sum(rows)::bigint as rows, sum(tokens)::bigint as tokens,
       avg(loss) as loss, avg(kl) as kl, avg(entropy) as entropy, max(ratio_max) as ratio_max,
       avg(clip_low + clip_high) as clipped, avg(is_ratio_mean) as is_ratio_mean, max(is_ratio_max) as is_ratio_max,
       avg(is_clipped) as is_clipped, avg(logp_diff) as logp_diff, avg(grad_norm) as grad_norm, max(lr) as lr
from 'updates/**/*.parquet'
group by all
order by all
