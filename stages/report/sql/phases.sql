-- Where the time went: seconds by stage and phase, summed over versions, turns and shards (shards may run side by side).
-- Engine overhead is what an engine costs before it samples: imports, loading, starting.
select stage, phase,
       phase in ('tokenizer', 'import vllm', 'start engine', 'engine start', 'first call') as engine_overhead,
       count(*) as times, sum(seconds) as seconds, sum(count)::bigint as count, unit,
       sum(count) filter (where unit <> '') / nullif(sum(seconds), 0) as per_second
from timings
group by all
order by stage, seconds desc, phase
