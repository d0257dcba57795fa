-- credits: reward sent back through the trees, from the last turn to the first. Each round of the recursion credits the
-- nodes of one turn from their children, who had their turn in the round before.
-- A node keeps its own reward when nobody below it could be judged; a node that could not be judged itself has neither
-- reward nor credit, and is no child to its parent.

CREATE OR REPLACE TEMP TABLE credits AS
WITH RECURSIVE
    tree AS MATERIALIZED (
        SELECT nodes.rowid AS node, grp, nodes.turn, reward FROM nodes JOIN groups USING (group_id)
    ),
    credited AS (
        SELECT node, grp, turn, reward, reward AS credit
        FROM tree
        WHERE turn = (SELECT max(turn) FROM tree)
        UNION ALL
        SELECT
            tree.node, tree.grp, tree.turn, reward,
            CASE
                WHEN reward IS NULL OR children IS NULL OR getvariable('strategy') = 'own'
                    THEN reward
                WHEN getvariable('strategy') = 'mars'
                    THEN greatest(reward, children[-1])
                WHEN getvariable('strategy') = 'mers'
                    THEN (reward + getvariable('gamma')::DOUBLE * mean_of(children))
                        / CASE getvariable('normalise') WHEN 'per_turn' THEN getvariable('turns') - tree.turn + 1 ELSE 1 END
            END
        FROM tree
        LEFT JOIN (
            SELECT parent, children
            FROM (
                SELECT grp, list_sort(list(credit)) AS children
                FROM credited
                WHERE credit IS NOT NULL
                GROUP BY grp
            ) JOIN groups USING (grp)
        ) ON parent = tree.node
        WHERE tree.turn = (SELECT any_value(turn) - 1 FROM credited)
    )
FROM credited;
