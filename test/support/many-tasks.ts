/**
 * Statements that fill the tables of both dialects with tasks that wait, each with one request: of four tenants
 * and three workflows, half of them without a deadline, one in ten for an approval. Only what lists read is like theirs.
 */
export function manyTasks(count: number): readonly string[] {
  const numbers = `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})`;
  const taskId = `('@t' || (i % 4) || '/task-' || i)`;
  const execution = `'{"workflow":"w","version":1,"status":"waiting_user","step":"a","decisions":1,"pending":{"kind":"question","decision":1,"question":"?"},"lastError":null,"revision":1}'`;
  const expires = `case when i % 2 = 0 then 9007199254740991 else 1000 + i end`;
  const kind = `case when i % 10 = 0 then 'approval' else 'question' end`;
  return [
    `${numbers} insert into statecard_heads (task_id, namespace, checkpoint_id, workflow, revision, step, execution, updated_at, updated_second, tenant, pending)
     select ${taskId}, '', 'c', 'w' || (i % 3), 1, 'a', ${execution}, i * 100, i / 10, 't' || (i % 4), 1 from n`,
    `${numbers} insert into statecard_requests (task_id, id, decision, forks, request, tenant, workflow, kind, expires_at, is_open)
     select ${taskId}, 'q1.0', 1, 0, '{"id":"q1.0","kind":"' || ${kind} || '","question":"?","digest":"d"}', 't' || (i % 4), 'w' || (i % 3), ${kind}, ${expires}, 1 from n`,
  ];
}
