-- The tests that took the longest.
select version, turn, node_id, test, kind, cpu_ms, wall_ms, retried
from 'test_times/**/*.parquet' join 'verdicts/**/*.parquet' using (version, turn, node_id, test)
order by greatest(coalesce(cpu_ms, 0), coalesce(wall_ms, 0)) desc, version, node_id, test
