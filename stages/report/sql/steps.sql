-- Every optimiser step of the run, numbered over all versions.
select row_number() over (order by version, step) as step_of_run, version, step, tokens, loss, kl, entropy, grad_norm,
       lr, clip_low + clip_high as clipped, ratio_max, is_ratio_mean, is_ratio_max, is_clipped, logp_diff
from 'updates/**/*.parquet'
order by 1
