-- The run in one line.
select (select count(*) from 'feedback/**/*.parquet') as nodes,
       (select count(distinct task_id) from 'feedback/**/*.parquet') as tasks_trained,
       (select count(*) from 'tasks/**/*.parquet' where split = 'train') as tasks_train,
       (select count(*) from 'tasks/**/*.parquet' where split = 'heldout') as tasks_heldout,
       (select count(*) from 'rejected.parquet') as tasks_rejected,
       (select count(*) from 'verdicts/**/*.parquet') as tests_run,
       (select sum(len(completion_ids))::bigint from 'rollouts/**/*.parquet') as sampled_tokens,
       (select sum(tokens)::bigint from 'updates/**/*.parquet') as trained_tokens
