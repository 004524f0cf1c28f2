/* One file for each page that loads scripts, instead of a module after the other; web/assets.py
 * serves them where they are there. Libraries that few items need stay files of their own. */

import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { relative } from "node:path";
import { build } from "esbuild";

const FOLDER = process.argv[2] ?? "bundle";

await rm(FOLDER, { recursive: true, force: true });
/** @type {Record<string, string>} the digest of every file that a bundle was made of */
const digests = {};
for (const entry of await entries()) {
  const { metafile } = await build({
    entryPoints: [`static/${entry}`],
    outbase: "static",
    outdir: FOLDER,
    chunkNames: "js/chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    target: "es2023",
    metafile: true,
  });
  for (const path of Object.keys(metafile.inputs))
    digests[relative("static", path)] = createHash("sha256")
      .update(await readFile(path))
      .digest("hex");
}
await writeFile(`${FOLDER}/sources.json`, JSON.stringify(digests));

/** Return the scripts that pages name. */
async function entries() {
  const names = await readdir("templates");
  const pages = await Promise.all(names.map((name) => readFile(`templates/${name}`, "utf8")));
  return new Set(pages.flatMap((page) => page.match(/(?<=static\(')js\/[^']+/g) ?? []));
}
