-- nodes: every node of a version with its reward, in the order of names, so that DuckDB's own row number (rowid) is its
-- number from here on. The turn comes from the folder that a file lies in (turn=2). A full join, so that 2_checks.sql
-- sees what one of the two tables lacks.

CREATE OR REPLACE TEMP TABLE nodes AS
WITH
    rollouts AS (
        SELECT node_id, parent_id, group_id, task_id, turn
        FROM read_parquet(getvariable('rollouts'), hive_partitioning = true, hive_types = {'turn': INTEGER})
    ),
    feedback AS (
        SELECT node_id, task_id AS feedback_task, turn AS feedback_turn, reward
        FROM read_parquet(getvariable('feedback'), hive_partitioning = true, hive_types = {'turn': INTEGER})
    )
SELECT
    node_id, parent_id, group_id, task_id, turn, reward,
    nullif(feedback_turn, turn) AS odd_turn, -- turn and task in the feedback, where they differ
    nullif(feedback_task, task_id) AS odd_task,
    feedback_turn IS NULL AS no_feedback
FROM rollouts FULL JOIN feedback USING (node_id)
ORDER BY node_id;

-- groups: siblings sampled from one prompt, numbered in the order of names, with the node they were sampled for. Keyed
-- by name, never by the text of a prompt.

CREATE OR REPLACE TEMP TABLE groups AS
SELECT row_number() OVER (ORDER BY named.group_id) AS grp, named.*, parent.rowid AS parent
FROM (
    SELECT group_id, min(task_id) AS task_id, max(task_id) AS last_task, min(turn) AS turn, max(turn) AS last_turn
    FROM nodes
    GROUP BY group_id
) AS named LEFT JOIN nodes AS parent ON parent.node_id = named.group_id;
