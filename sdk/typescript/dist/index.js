/** A kit for extensions of hosts that speak becket's contract. */
export { Code } from "./contract.js";
export { CallError, RpcError } from "./errors.js";
export { createExtension } from "./extension.js";
