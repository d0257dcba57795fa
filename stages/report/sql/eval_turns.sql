-- Evaluation, turn by turn: attempts that are right (all hidden tests passed, or all tests where none is hidden), what
-- retries made of wrong and of right attempts, and attempts that could not be right.
with attempt as (
    select r.version, r.turn, r.node_id, r.parent_id, r.finish_reason, f.kind, t.split as benchmark,
           f.reward is not null and f.total > 0
           and case when f.hidden_total > 0 then f.hidden_passed = f.hidden_total else f.passed = f.total end as solved
    from 'eval_rollouts/**/*.parquet' r
    join 'eval_feedback/**/*.parquet' f using (version, turn, node_id)
    join 'tasks/**/*.parquet' t on t.task_id = r.task_id and t.split <> 'train'
)
select a.benchmark, a.version, a.turn, count(*) as attempts, count(*) filter (a.solved) as solved,
       count(*) filter (b.solved is false and a.solved) as wrong_to_right,
       count(*) filter (b.solved and not a.solved) as right_to_wrong,
       avg((a.finish_reason = 'length')::int) as cut_share,
       avg((a.kind = 'no_code')::int) as no_code_share,
       avg((a.finish_reason = 'context_overflow')::int) as overflow_share
from attempt a left join attempt b on b.version = a.version and b.node_id = a.parent_id
group by a.benchmark, a.version, a.turn
order by a.benchmark, a.version, a.turn
