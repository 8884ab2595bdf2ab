import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const KIT = fileURLToPath(new URL("../../", import.meta.url));
const BUILT = ["dist", "example", "template"];

test("the kit has at most 15,000 bytes minified", async () => {
  const entryPoints = [join(KIT, "src", "index.ts")];
  const options = { bundle: true, minify: true, platform: "node", format: "esm", write: false } as const;
  const { outputFiles } = await build({ entryPoints, ...options });
  assert.ok((outputFiles[0]?.contents.length ?? Infinity) <= 15_000, `${outputFiles[0]?.contents.length}`);
});

test("what is built of the sources is up to date", () => {
  const copy = mkdtempSync(join(tmpdir(), "becket-kit-"));
  try {
    for (const name of readdirSync(KIT)) {
      if (name !== "node_modules" && name !== "build") cpSync(join(KIT, name), join(copy, name), { recursive: true });
    }
    symlinkSync(join(KIT, "node_modules"), join(copy, "node_modules"));
    execFileSync("npm", ["run", "--silent", "build"], { cwd: copy });
    for (const folder of BUILT) {
      for (const name of readdirSync(join(copy, folder))) {
        const texts = [KIT, copy].map((root) => readFileSync(join(root, folder, name), "utf8"));
        assert.equal(texts[0], texts[1], `${folder}/${name}: run \`npm run build\``);
      }
    }
  } finally {
    rmSync(copy, { recursive: true });
  }
});
