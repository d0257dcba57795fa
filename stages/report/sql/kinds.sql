-- How nodes ended: passed, or the kind of the first test that failed.
select version, turn, kind, count(*) as nodes
from 'feedback/**/*.parquet'
group by all
order by version, turn, nodes desc, kind
