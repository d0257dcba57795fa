-- problems: what does not fit together, one row for each node or group with what is wrong. No rows: all is well.

CREATE OR REPLACE TEMP VIEW problems AS
SELECT 'node ' || node_id AS "where", 'occurs more than once' AS what
FROM nodes
GROUP BY node_id
HAVING count(*) > 1
UNION ALL
SELECT 'group ' || group_id, 'holds nodes of tasks ' || task_id || ' and ' || last_task
FROM groups
WHERE task_id <> last_task
UNION ALL
SELECT
    'node ' || child.node_id,
    CASE
        WHEN child.turn IS NULL
            THEN 'has feedback, of turn ' || child.odd_turn || ', but is not among the rollouts'
        WHEN child.no_feedback
            THEN 'of turn ' || child.turn || ' has no feedback'
        WHEN child.odd_turn IS NOT NULL
            THEN 'is of turn ' || child.turn || ' in the rollouts and of turn ' || child.odd_turn || ' in the feedback'
        WHEN child.odd_task IS NOT NULL
            THEN 'is of task ' || child.task_id || ' in the rollouts and of task ' || child.odd_task || ' in the feedback'
        WHEN child.turn NOT BETWEEN 1 AND getvariable('turns')
            THEN 'is of turn ' || child.turn || ', outside 1 to ' || getvariable('turns')
        WHEN child.parent_id IS NULL AND child.turn > 1
            THEN 'of turn ' || child.turn || ' has no parent'
        WHEN child.parent_id IS NOT NULL AND child.turn = 1
            THEN 'of turn 1 has a parent, ' || child.parent_id
        WHEN child.parent_id <> child.group_id
            THEN 'is in group ' || child.group_id || ', not in that of its parent ' || child.parent_id
        WHEN child.parent_id IS NULL AND parent.node_id IS NOT NULL
            THEN 'is a root in group ' || child.group_id || ', which is the name of a node'
        WHEN child.parent_id IS NOT NULL AND parent.node_id IS NULL
            THEN 'of turn ' || child.turn || ' has a parent, ' || child.parent_id || ', that is not among the rollouts'
        WHEN parent.turn <> child.turn - 1
            THEN 'of turn ' || child.turn || ' has a parent, ' || child.parent_id || ', of turn ' || parent.turn
        WHEN parent.task_id <> child.task_id
            THEN 'is of task ' || child.task_id || ' and its parent of task ' || parent.task_id
        WHEN NOT child.reward BETWEEN 0 AND 1
            THEN 'has a reward outside 0 to 1: ' || child.reward
    END AS found
FROM nodes AS child LEFT JOIN nodes AS parent ON parent.node_id = child.group_id
WHERE found IS NOT NULL;

FROM problems ORDER BY ALL LIMIT 5;
