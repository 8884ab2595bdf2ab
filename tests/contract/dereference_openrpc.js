// Reads the OpenRPC document of this path with OpenRPC's own parser, which validates and dereferences it, and writes it.

const { parseOpenRPCDocument } = require("@open-rpc/schema-utils-js");

const text = require("node:fs").readFileSync(process.argv[2], "utf8");
parseOpenRPCDocument(text, { validate: true, dereference: true }).then(
  (document) => process.stdout.write(JSON.stringify({ methods: document.methods })),
  (error) => {
    console.error(error.message);
    process.exit(1);
  },
);
