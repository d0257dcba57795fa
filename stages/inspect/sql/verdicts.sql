-- The verdicts of one node.
select test, visible, kind, message, call, got, expected
from 'verdicts/**/*.parquet'
where node_id = $node
order by test
