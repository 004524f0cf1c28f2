// A session by the client that orval generated: key, labels. The address is in the client.

import {
  changeSession,
  createPool,
  getCertificate,
  nextDraws,
  observe,
  openSession,
  sealPool,
  verifyCertificate,
} from "./client.js";

declare const process: { argv: string[] };

const [key, labels] = process.argv.slice(2);
const options = { headers: { Authorization: `Bearer ${key}` } };
const worker = "orval";

function succeeded<Answer extends { status: number }, Status extends number>(
  answer: Answer,
  status: Status,
) {
  if (answer.status !== status) throw new Error(JSON.stringify(answer));
  return answer as Extract<Answer, { status: Status }>;
}

const items = Array.from({ length: 40 }, (_, index) => ({
  id: `q-${index}`,
  surrogate: index / 40,
}));
const pool = succeeded(
  await createPool({ name: worker, loss: { kind: "zero_one" }, items }, options),
  201,
).data;
succeeded(await sealPool(pool.id, options), 200);
const opening = { pool_id: pool.id, budget: Number(labels) };
const session = succeeded(await openSession(opening, options), 201).data;
let { state, draws } = succeeded(await nextDraws(session.id, { worker }, options), 200).data;
for (let draw = draws[0]; draw !== undefined; draw = draws[0]) {
  const judgement = { round: draw.round, loss: draw.item.index % 2, worker, next: 1 };
  ({ state, draws } = succeeded(await observe(session.id, judgement, options), 200).data);
}
const closed = succeeded(await changeSession(session.id, { state: "closed" }, options), 200).data;
const certificate = succeeded(await getCertificate(session.id, options), 200).data;
const json = { headers: { ...options.headers, "Content-Type": "application/json" } };
const report = succeeded(await verifyCertificate(certificate, {}, json), 200).data;
console.log(state, closed.rounds.judged, closed.lower, closed.upper, report.valid, report.kind);
