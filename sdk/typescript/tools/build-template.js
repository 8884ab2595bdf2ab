/** Writes template/main.js from main.ts, whose imports exist only in a project. */

import { readFileSync, writeFileSync } from "node:fs";
import ts from "typescript";

const folder = new URL("../template/", import.meta.url);
const source = readFileSync(new URL("main.ts", folder), "utf8");
const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
writeFileSync(new URL("main.js", folder), ts.transpileModule(source, { compilerOptions }).outputText);
