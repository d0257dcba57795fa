-- pruned: the nodes left out of the update, with the reason. Values are compared after rounding to 12 decimals, so that
-- the last bits never decide; equals stand in the order of their names (by bytes).

CREATE OR REPLACE TEMP TABLE pruned AS
WITH
    ranked AS (
        SELECT node, grp, round(CASE getvariable('rank_by') WHEN 'credit' THEN credit ELSE reward END, 12) AS value
        FROM credits
        WHERE getvariable('prune') <> 'none'
    ),
    -- inter: per task and turn, the b groups of highest standard deviation stay
    spreads AS (
        SELECT grp, std_of(list_sort(list(value) FILTER (value IS NOT NULL))) AS spread
        FROM ranked
        WHERE getvariable('prune') LIKE '%inter%'
        GROUP BY grp
    ),
    inter AS (
        SELECT grp
        FROM spreads JOIN groups USING (grp)
        QUALIFY row_number() OVER (
            PARTITION BY task_id, turn ORDER BY round(coalesce(spread, 0), 12) DESC, grp
        ) > getvariable('inter_groups')
    ),
    -- intra: in each group of more than m nodes the m siblings of highest variance stay. Ordered by value, falling, and
    -- then by name, these are the k first and the m - k last for some k; of equal splits the one with the larger k.
    -- Nodes without a value are pruned before all others.
    crowded AS (
        SELECT
            grp, getvariable('intra_nodes') AS m,
            list_reverse_sort(list(value) FILTER (value IS NOT NULL)) AS descending
        FROM ranked ANTI JOIN inter USING (grp)
        WHERE getvariable('prune') LIKE '%intra%'
        GROUP BY grp
        HAVING count(*) > m
    ),
    splits AS (
        SELECT
            grp, m, len(descending) AS n,
            list_transform(
                range(m, -1, -1), -- k = m, m - 1, ..., 0
                lambda k: round(list_var_samp(list_concat(descending[1:k], descending[n - (m - k) + 1:n])), 12)
            ) AS variances
        FROM crowded
    ),
    best AS (
        SELECT grp, m, n, CASE WHEN n > m THEN m + 1 - list_position(variances, list_max(variances)) ELSE n END AS k
        FROM splits
    ),
    intra AS (
        SELECT node
        FROM ranked JOIN best USING (grp)
        QUALIFY value IS NULL OR row_number() OVER (
            PARTITION BY grp ORDER BY value DESC NULLS LAST, node
        ) BETWEEN k + 1 AND n - (m - k)
    )
SELECT node, 'inter' AS reason FROM ranked SEMI JOIN inter USING (grp)
UNION ALL
SELECT node, 'intra' FROM intra;
