-- What failing tests say most often: the line of each message that names an error, else its first, with an example node.
select version, kind, coalesce(nullif(regexp_extract(message, '[\w.]*(?:Error|Exception|Exit|Interrupt)\b[^\n]*'), ''),
                               regexp_extract(message, '^[^\n]*'), '')[:70] as message, count(*) as tests,
       count(distinct node_id) as nodes, min(node_id) as example
from 'verdicts/**/*.parquet'
where kind <> 'passed'
group by all
order by tests desc, version, kind, message
