-- The credit table against what it must hold, worked out again from rewards and the tree: rows that are not so.
with credit as (from 'credit/**/*.parquet'),
feedback as (select version, node_id, reward as judged from 'feedback/**/*.parquet'),
child as (
    select version, parent_id as node_id, max(credit) as best, avg(credit) as mean
    from credit where parent_id is not null group by all
),
stats as (
    select version, group_id, avg(credit) as mean, stddev_samp(credit) as std, count(credit) as counted,
           max(credit) - min(credit) as spread
    from credit where kept or $all_nodes group by all
),
joined as (
    select credit.*, judged, best, child.mean as child_mean, stats.mean as mean, std, counted, spread
    from credit
    left join feedback using (version, node_id)
    left join child using (version, node_id)
    left join stats using (version, group_id)
),
wrong as (
    select version, node_id, unnest([
        case when reward is distinct from judged then 'reward is not the one in feedback' end,
        case when kept and prune_reason is not null or not kept and prune_reason is null
             then 'kept and prune_reason disagree' end,
        case when not kept and advantage <> 0 then 'a pruned node has an advantage' end,
        case when credit is null and advantage <> 0 then 'an unjudged node has an advantage' end,
        case when reward is null and credit is not null then 'an unjudged node has credit' end,
        case when reward is not null and credit is null then 'a judged node has no credit' end,
        case when reward is not null and abs(credit - ($credit)) > 1e-9 then 'credit is not $strategy' end,
        case when kept and credit is not null and (counted < 2 or spread = 0) and advantage <> 0
             then 'a group without spread has an advantage' end,
        case when $scaled_by_group and kept and credit is not null and counted > 1 and spread > 0
                  and abs(advantage - (credit - mean) / (std + 1e-4)) > 1e-9
             then 'advantage is not (credit - mean) / (std + 1e-4)' end
    ]) as problem
    from joined
)
select problem, count(*) as nodes, min(node_id) as example
from wrong
where problem is not null
group by all
order by nodes desc, problem
