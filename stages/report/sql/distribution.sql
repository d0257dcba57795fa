-- How $column is spread, by version and turn, in bins of $width; `bin` is the lower edge. Values within 1e-9 below an edge
-- count as on it. Nodes that could not be judged are left out.
select version, turn, kept, floor($column / $width + 1e-9) * $width as bin, count(*) as nodes
from 'credit/**/*.parquet'
where credit is not null
group by all
order by all
