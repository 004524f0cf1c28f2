// A made-up model that doubles numbers: right as often as its skill says, the same on every machine.

const { createHash } = require("node:crypto");

module.exports = class {
  constructor({ config }) {
    this.config = config;
  }

  id() {
    return this.config.model;
  }

  async callApi(_, { vars }) {
    const { model, skill, down } = this.config;
    if (vars.n === down) return { error: "down" };
    const digest = createHash("sha256").update(`${model}|${vars.n}`).digest();
    const right = digest.readUIntBE(0, 6) / 2 ** 48 < skill;
    return { output: right ? `${2 * vars.n}` : "I would say that is a hundred." };
  }
};
