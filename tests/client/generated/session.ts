// A session by the types that openapi-typescript made: address, key, labels.

import type { operations } from "./api.js";

declare const process: { argv: string[] };

type Name = keyof operations;
type Content<Of> = Of extends { content: infer Kinds } ? Kinds[keyof Kinds] : never;
type Body<Of extends Name> = operations[Of] extends { requestBody: infer Sent }
  ? Content<Sent>
  : undefined;
type Told<Of extends Name> = operations[Of]["responses"] extends infer Answers
  ? Content<Answers[keyof Answers & (200 | 201)]>
  : never;

const [url, key, labels] = process.argv.slice(2);

async function ask<Of extends Name>(method: string, path: string, body: Body<Of>) {
  const lines = typeof body === "string";
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      "Content-Type": lines ? "application/x-ndjson" : "application/json",
    },
    body: lines || body === undefined ? body : JSON.stringify(body),
  });
  const told = await answer.text();
  if (!answer.ok) throw new Error(told);
  return JSON.parse(told) as Told<Of>;
}

const rows = Array.from({ length: 40 }, (_, at) => ({ id: `q-${at}`, surrogate: at / 40 }));
const file = rows.map((row) => JSON.stringify(row)).join("\n");
const query = "name=typescript&kind=zero_one";
const { pool } = await ask<"create_pool_from_file">("POST", `/v1/pool-files?${query}`, file);
if (pool === null) throw new Error("a dry run");
const opening = { pool_id: pool.id, budget: Number(labels) };
const session = await ask<"open_session">("POST", "/v1/sessions", opening);
const path = `/v1/sessions/${session.id}`;
const worker = "typescript";
let told = await ask<"next_draws">("POST", `${path}/next`, { worker });
for (let draw = told.draws[0]; draw !== undefined; draw = told.draws[0]) {
  told = await ask<"observe">("POST", `${path}/observe`, {
    round: draw.round,
    loss: draw.item.index % 2,
    worker,
    next: 1,
  });
}
const now = await ask<"change_session">("PATCH", path, { state: "closed" });
console.log(told.state, now.rounds.judged, now.lower, now.upper);
