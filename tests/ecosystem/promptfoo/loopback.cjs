// Loaded before a program: whatever machine it asks for, it reaches a closed port of its own. What it
// asked for is written down.

const { appendFileSync } = require("node:fs");
const net = require("node:net");

const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function (...parts) {
  const [options] = Array.isArray(parts[0]) ? parts[0] : parts;
  const host = options.host ?? "";
  if (options.path !== undefined || /^(127\.|::1|localhost$)/.test(host)) {
    return connect.apply(this, parts);
  }
  appendFileSync(process.env.TRIED, `${host}\n`);
  return connect.call(this, { host: "127.0.0.1", port: 9 });
};
