-- One row per turn: what became of attempts, and of the attempts before them. After attempts.sql.
-- A retry follows a wrong attempt, or one that is right by the hidden tests and failed a visible one.
select
    attempt.turn::integer as turn,
    count(*) as attempts,
    count(*) filter (attempt.solved) as "right",
    count(*) filter (before.solved is false) as after_wrong,
    count(*) filter (before.solved is false and attempt.solved) as wrong_to_right,
    count(*) filter (before.solved) as after_right,
    count(*) filter (before.solved and not attempt.solved) as right_to_wrong,
    count(*) filter (attempt.finish_reason = 'length') as truncated,
    count(*) filter (attempt.kind = 'no_code') as no_code,
    count(*) filter (attempt.finish_reason = 'context_overflow') as overflow,
    count(*) filter (attempt.unjudged and attempt.finish_reason <> 'context_overflow') as unjudged
from attempts as attempt left join attempts as before on before.node_id = attempt.parent_id
group by attempt.turn
order by attempt.turn
