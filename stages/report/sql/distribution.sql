-- How $column is spread, by version and turn, in bins of $width; `bin` is a bin's middle, so that 0 and 1 are inside of
-- one. Nodes that could not be judged are left out.
select version, turn, kept, floor($column / $width + 0.5 + 1e-9) * $width as bin, count(*) as nodes
from 'credit/**/*.parquet'
where credit is not null
group by all
order by all
