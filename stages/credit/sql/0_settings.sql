-- Settings at their defaults (the `credit` section of config.yaml), and two functions that the other files use.
-- By hand: `.read` this file, overwrite what differs, then `.read` 1 to 5 in order. See docs/credit.md.

SET VARIABLE rollouts = 'results/demo/rollouts/version=0/*/*.parquet'; -- files, a glob or a list of them
SET VARIABLE feedback = 'results/demo/feedback/version=0/*/*.parquet';
SET VARIABLE turns = 2;               -- S, the turns that a tree may have
SET VARIABLE strategy = 'mars';       -- mars | mers | own
SET VARIABLE gamma = 0.9;             -- mers: weight of the children's mean
SET VARIABLE normalise = 'per_turn';  -- mers: per_turn | none
SET VARIABLE prune = 'none';          -- none | inter | intra | inter+intra
SET VARIABLE rank_by = 'credit';      -- credit | reward
SET VARIABLE inter_groups = 4;        -- b
SET VARIABLE intra_nodes = 4;         -- m
SET VARIABLE stats_over = 'kept';     -- kept | all
SET VARIABLE scale = 'group';         -- group | batch | none

-- Both take a list that is sorted and free of NULL. Floating addition depends on its order, and threads hand rows over
-- in any order; a sorted list is added up in one order only, so results are the same to the last bit, whatever the
-- threads and whatever the nodes are called.

-- Mean; of equal values exactly that value (0.1 + 0.1 + 0.1 is not 0.3).
CREATE OR REPLACE TEMP MACRO mean_of(sorted) AS
    CASE WHEN sorted[1] = sorted[-1] THEN sorted[1] ELSE list_sum(sorted) / len(sorted) END;

-- Sample standard deviation (Welford's update, as exact as two passes); exactly 0 for values that differ by no more than
-- rounding, NULL for fewer than two.
CREATE OR REPLACE TEMP MACRO std_of(sorted) AS
    CASE WHEN sorted[-1] - sorted[1] <= 1e-12 AND len(sorted) > 1 THEN 0.0 ELSE list_stddev_samp(sorted) END;
