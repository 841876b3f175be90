/** Takes a database of today's format back to the fifth, one statement after the other. */
export const TO_FORMAT_5: readonly string[] = [
  ...["heads_newest", "heads_workflow", "heads_tenant", "requests_due", "requests_approvals", "requests_tenant"].map(
    (index) => `drop index statecard_${index}`,
  ),
  ...["tenant", "pending", "updated_second"].map((column) => `alter table statecard_heads drop column ${column}`),
  ...["tenant", "workflow", "kind", "expires_at", "is_open"].map(
    (column) => `alter table statecard_requests drop column ${column}`,
  ),
  "alter table statecard_leases drop column since",
  "alter table statecard_wakes drop column attempts",
  "drop table statecard_consents",
  "update statecard_meta set value = '5' where key = 'schema_version'",
];
