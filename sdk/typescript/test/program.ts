/** The extension of stdio.test.ts. */

import { createExtension } from "../src/index.js";

const onStop = (): void => {
  console.log("stopped");
};

createExtension({ id: "program", version: "1.0.0", onStop })
  .handle("print", () => {
    console.log("by console.log");
    process.stdout.write("by process.stdout\n");
    return "printed";
  })
  .handle("compute", (params) => {
    const until = performance.now() + (params as { ms: number }).ms;
    while (performance.now() < until);
    return "computed";
  })
  .handle("wait", () => new Promise(() => undefined))
  .handle("large", () => "x".repeat(3_000_000))
  .run();
console.log("after run");
