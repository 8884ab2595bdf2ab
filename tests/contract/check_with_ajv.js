// Reads `{schemas, samples}` from stdin and writes what ajv says of each sample: true, false.
// It compiles every schema and every definition in its strictest mode first, and fails where one does not compile.

const Ajv2020 = require("ajv/dist/2020");

const { schemas, samples } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

const ajv = new Ajv2020({
  strict: true,
  strictTypes: false, // many a member may be of any type and still has a rule for one of them
  strictRequired: false, // what is required in one branch is described in another
  validateFormats: false,
});
ajv.addSchema(schemas);
for (const schema of schemas) {
  ajv.getSchema(schema.$id);
  for (const definition of Object.keys(schema.$defs ?? {})) {
    ajv.compile({ $ref: `${schema.$id}#/$defs/${definition}` });
  }
}

const validators = new Map();
const said = samples.map(({ reference, value }) => {
  if (!validators.has(reference)) {
    validators.set(reference, ajv.compile({ $ref: reference }));
  }
  return validators.get(reference)(value);
});
process.stdout.write(JSON.stringify(said));
