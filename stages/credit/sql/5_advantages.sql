-- credit: the table as written, one row per node. advantage = (credit - mean) / (std + 1e-4) inside the group; exactly 0
-- for a pruned node, a node that could not be judged, and where the group's credits are equal or a single one.

CREATE OR REPLACE TEMP VIEW credit AS
WITH
    counted AS ( -- the credits that means and standard deviations are taken over
        SELECT grp, credit
        FROM credits ANTI JOIN (FROM pruned WHERE getvariable('stats_over') = 'kept') USING (node)
        WHERE credit IS NOT NULL
    ),
    group_stats AS (
        SELECT grp, mean_of(sorted) AS group_mean, std_of(sorted) AS group_std
        FROM (SELECT grp, list_sort(list(credit)) AS sorted FROM counted GROUP BY grp)
    ),
    -- scale: batch. Equal credits of the whole version are counted first, then added up in the order of their values.
    histogram AS (
        SELECT credit, count(*) AS times FROM counted WHERE getvariable('scale') = 'batch' GROUP BY credit
    ),
    batch_mean AS (
        SELECT list_sum(list(times * credit ORDER BY credit)) / sum(times) AS mean FROM histogram
    ),
    batch AS (
        SELECT sqrt(list_sum(list(times * (credit - mean) ** 2 ORDER BY credit)) / (sum(times) - 1)) AS batch_std
        FROM histogram CROSS JOIN batch_mean
    )
SELECT
    node_id, parent_id, group_id, task_id, nodes.turn, nodes.reward, credit, group_mean, group_std,
    CASE
        WHEN reason IS NOT NULL OR credit IS NULL OR coalesce(group_std, 0) = 0 THEN 0.0
        WHEN getvariable('scale') = 'group' THEN (credit - group_mean) / (group_std + 1e-4)
        WHEN getvariable('scale') = 'batch' THEN (credit - group_mean) / (batch_std + 1e-4)
        WHEN getvariable('scale') = 'none' THEN credit - group_mean
    END AS advantage,
    reason IS NULL AS kept,
    reason AS prune_reason
FROM nodes
JOIN credits ON credits.node = nodes.rowid
LEFT JOIN pruned USING (node)
LEFT JOIN group_stats USING (grp)
CROSS JOIN batch
ORDER BY node;
