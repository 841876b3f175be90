import { BY_HEAD, NEVER } from "./open-requests.ts";

/** What a tenant's name is made of. */
const NAME = "ltrim(substr(task_id, 2), 'abcdefghijklmnopqrstuvwxyz0123456789._-')";
/** What `tenantOf` says, for stored ids. */
const TENANT = `case when substr(task_id, 1, 1) <> '@' then ''
    when substr(task_id, 2, 1) <> '/' and substr(${NAME}, 1, 1) = '/' then substr(task_id, 2, length(task_id) - 1 - length(${NAME}))
    else '@' end`;

/** Stored JSON without escaped characters: PostgreSQL reads none that stand for what its texts cannot hold. */
const json = (column: string) => String.raw`json(replace(${column}, '\u', '/u'))`;

/** A number of at most so many digits, without its fraction; something else where the text is none. */
function whole(text: string, digits: number, otherwise: string): string {
  const number = `case when ${text} like '%.%' then rtrim(rtrim(${text}, '0123456789'), '.') else ${text} end`;
  return `case when length(${number}) between 1 and ${digits} and ltrim(${number}, '0123456789') = ''
    then cast(${number} as bigint) else ${otherwise} end`;
}

const PENDING = `cast(${json("execution")} -> 'pending' ->> 'decision' as varchar)`;
const EXPIRES_AT = `cast(${json("request")} ->> 'expiresAt' as varchar)`;

/**
 * What older formats need before the tables of this one fit, by the format that they lead to. New tables are
 * made by their `if not exists`: format 3 has one more, `statecard_artifacts`, format 4 those of `statecard_memory`,
 * format 5 `statecard_keys` and `statecard_wakes`, format 6 `statecard_consents`.
 */
export const UPGRADES: Readonly<Record<number, readonly string[]>> = {
  2: [`alter table statecard_heads add column schema text`],
  // The first format may not have the table yet.
  5: [
    `create table if not exists statecard_tokens (name text primary key, hash text not null, created_at bigint not null)`,
    `alter table statecard_tokens add column tenant text not null default ''`,
  ],
  // Since when a task is run, and how often it may be tried; and what tells open requests and the tasks of a tenant by an index, from what is stored.
  6: [
    `alter table statecard_heads add column tenant text not null default ''`,
    `alter table statecard_heads add column pending integer`,
    `alter table statecard_heads add column updated_second bigint`,
    `update statecard_heads set tenant = ${TENANT},
       updated_second = case when namespace = '' and execution is not null then updated_at / 1000 end,
       pending = ${whole(PENDING, 9, "null")}`,
    `alter table statecard_requests add column tenant text not null default ''`,
    `alter table statecard_requests add column workflow text`,
    `alter table statecard_requests add column kind text not null default 'question'`,
    `alter table statecard_requests add column expires_at bigint not null default ${NEVER}`,
    `alter table statecard_requests add column is_open integer not null default 0`,
    `update statecard_requests set tenant = ${TENANT}, kind = coalesce(${json("request")} ->> 'kind', 'question'),
       expires_at = ${whole(EXPIRES_AT, 15, String(NEVER))}, ${BY_HEAD}`,
    `alter table statecard_leases add column since bigint`,
    `create table if not exists statecard_wakes (task_id text primary key, count integer not null, at bigint not null)`,
    `alter table statecard_wakes add column attempts integer`,
  ],
};
