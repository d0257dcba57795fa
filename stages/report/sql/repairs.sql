-- From the kind of a failed attempt to the kind of each attempt that read its feedback.
with node as (
    select version, turn, node_id, parent_id, kind
    from 'rollouts/**/*.parquet' as rollouts join 'feedback/**/*.parquet' as feedback using (version, turn, node_id)
)
select child.version, parent.kind as parent_kind, child.kind as child_kind, count(*) as nodes
from node as child
join node as parent on parent.version = child.version and parent.node_id = child.parent_id
group by all
order by all
