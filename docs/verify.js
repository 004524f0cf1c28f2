// Checks what a certificate's file shows by itself: canonical JSON, digests, the hash chain of the
// ledger, the commitment to the seed, and the signature. Whether the claim follows from the ledger
// is computed by `celeus verify` alone.
"use strict";

const FORMAT = "celeus-certificate-2";
const LARGEST_BYTES = 1 << 28;

/** Why the file does not hold. */
class Difference extends Error {}

/** Why nothing can be said of the file. */
class Uncheckable extends Error {}

const bytesOf = (text) => new TextEncoder().encode(text);

const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function fromHex(text, digits, name) {
  if (typeof text !== "string" || !new RegExp(`^[0-9a-f]{${digits}}$`).test(text))
    throw new Difference(`${name} is not ${digits} hexadecimal digits`);
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** RFC 8785: names in order of their UTF-16 code units, numbers as JavaScript writes them. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

const digestOf = async (value) => hexOf(await sha256(bytesOf(canonical(value))));

function equal(claimed, found, name) {
  if (claimed !== found) throw new Difference(`${name} is ${claimed}, expected ${found}`);
}

/** Whether everybody can sign for a key: eight times its point is zero. */
function ofSmallOrder(key) {
  const number = BigInt(`0x${hexOf(key.toReversed())}`) & ((1n << 255n) - 1n);
  const field = (1n << 255n) - 19n;
  return [
    0n,
    1n,
    field - 1n,
    field,
    field + 1n,
    0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
    0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  ].includes(number);
}

function read(data) {
  let text, certificate;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    certificate = JSON.parse(text);
  } catch {
    throw new Uncheckable("the file is no JSON");
  }
  if (certificate?.format !== FORMAT)
    throw new Uncheckable(`the file is no certificate of the format ${FORMAT}`);
  if (canonical(certificate) !== text) throw new Difference("the file is not in canonical JSON");
  return certificate;
}

async function checkDigests(certificate) {
  for (const name of ["plan", "pool"])
    equal(certificate[`${name}_digest`], await digestOf(certificate[name]), `${name}_digest`);
  equal(certificate.plan.pool_digest, certificate.pool_digest, "plan.pool_digest");
  equal(certificate.plan.commitment, certificate.commitment, "plan.commitment");
  return "plan and pool have the digests that were stated";
}

async function checkChain(certificate) {
  const session = String(certificate.session_id).replace(/^ses_/, "");
  const plan = fromHex(certificate.plan_digest, 64, "plan_digest");
  const beginning = [bytesOf("celeus-ledger-1"), fromHex(session, 32, "session_id"), plan];
  let head = await sha256(joined(...beginning));
  equal(certificate.chain.start, hexOf(head), "chain.start");
  for (const record of certificate.ledger)
    head = await sha256(joined(head, bytesOf(canonical(record))));
  equal(certificate.chain.head, hexOf(head), "chain.head");
  return `the ledger of ${certificate.ledger.length} events is the one of the stated head`;
}

async function checkSeed(certificate) {
  if (typeof certificate.final !== "boolean")
    throw new Difference(`final is ${certificate.final}, expected true or false`);
  equal(certificate.kind, certificate.final ? "final" : "interim", "kind");
  if (!certificate.final) {
    equal(certificate.seed, null, "seed");
    return "interim: the seed is not revealed yet";
  }
  const seed = fromHex(certificate.seed, certificate.seed?.length, "seed");
  equal(certificate.commitment, hexOf(await sha256(seed)), "commitment");
  return "the seed has the hash that this file states";
}

async function checkSignature(certificate, trusted) {
  const { signature, ...signed } = certificate;
  equal(signature?.algorithm, "Ed25519-SHA-256", "signature.algorithm");
  const key = fromHex(signature.public_key, 64, "signature.public_key");
  const value = fromHex(signature.value, 128, "signature.value");
  if (ofSmallOrder(key)) throw new Difference("everybody can sign for signature.public_key");
  if (trusted) equal(signature.public_key, trusted, "signature.public_key");
  let known;
  try {
    known = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    throw new Uncheckable("this browser does not know Ed25519, or the key is none");
  }
  const message = await sha256(bytesOf(canonical(signed)));
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, known, value, message)))
    throw new Difference("the signature is not by the holder of signature.public_key");
  return trusted
    ? "signed by the key you gave"
    : `signed by ${signature.public_key}: whose key that is, the file cannot show`;
}

/** Checks a file, and reports each check that passed; returns the verdict. */
async function check(file, trusted, report) {
  try {
    if (!globalThis.crypto?.subtle) throw new Uncheckable("this page has no cryptography here");
    if (trusted && !/^[0-9a-f]{64}$/.test(trusted))
      throw new Uncheckable("the key is not 64 hexadecimal digits");
    if (file.size > LARGEST_BYTES) throw new Uncheckable("the file is too large for this page");
    const certificate = read(await file.arrayBuffer());
    report("canonical JSON");
    for (const part of [checkDigests, checkChain, checkSeed, checkSignature])
      report(await part(certificate, trusted));
    const whose = trusted ? "" : "; whose key it is, the file cannot show";
    return `The file is as its signer signed it; whether its claim holds was not computed${whose}.`;
  } catch (error) {
    if (error instanceof Uncheckable) return `Cannot be checked: ${error.message}.`;
    if (error instanceof Difference) return `Does not hold: ${error.message}.`;
    // A member of another type than a certificate's
    return `Does not hold: it has not the form of a certificate (${error.message}).`;
  }
}

const element = (id) => document.getElementById(id);
let last = 0;

async function show() {
  const [file] = element("file").files;
  if (!file) return;
  const mine = (last += 1);
  element("checks").replaceChildren();
  element("verdict").textContent = "Checking …";
  const passed = [];
  const trusted = element("key").value.trim().toLowerCase();
  const verdict = await check(file, trusted, (line) => passed.push(line));
  if (mine !== last) return;
  for (const line of passed) {
    const item = document.createElement("li");
    item.textContent = line;
    element("checks").append(item);
  }
  element("verdict").textContent = verdict;
  element("rest").hidden = false;
}

element("file").addEventListener("change", show);
element("key").addEventListener("change", show);
