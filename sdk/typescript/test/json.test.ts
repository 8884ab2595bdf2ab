import assert from "node:assert/strict";
import { test } from "node:test";

import { parseJson } from "../src/json.js";
import { findProblems, objectSchema } from "../src/schema.js";

test("members that occur twice are found with their pointers", () => {
  const text = '{"a": [1, {"b/c": 1, "b/c": 2}], "a": 3, "d": "\\"a\\":"}';
  assert.deepEqual(parseJson(text).twice, ["/a/1/b~1c", "/a"]);
});

test("the elements of an array and the id of an object are known as they are written", () => {
  assert.deepEqual(parseJson('[ {"a":1} , "x,]", 1.0]').elements, ['{"a":1}', '"x,]"', "1.0"]);
  assert.equal(parseJson('{"params":{"id":7},"id":1.0}').id, "1.0");
  assert.equal(parseJson('{"id":1}').id, undefined);
});

test("inputs are checked with all problems, each with its pointer", () => {
  const schema = objectSchema({
    name: { type: "string" },
    times: { type: "integer", minimum: 1, default: 1 },
    tags: { type: "array", items: { enum: ["a", "b"] }, default: [] },
    note: { type: ["string", "null"], default: null },
  });
  assert.deepEqual(findProblems(schema, { name: "Ada", times: 3, tags: ["a"], note: null }), []);
  assert.deepEqual(findProblems(schema, { times: "x", tags: ["c"], note: 1, other: 1 }, "/input"), [
    { pointer: "/input/times", message: "expected `integer`, got `string`" },
    { pointer: "/input/tags/0", message: 'is none of ["a","b"]' },
    { pointer: "/input/note", message: "expected `string | null`, got `number`" },
    { pointer: "/input/other", message: "is unknown" },
    { pointer: "/input/name", message: "is missing" },
  ]);
  assert.equal(findProblems(schema, { name: "Ada", times: 1.5 }).length, 1);
  assert.equal(findProblems(schema, 7)[0]?.message, "expected `object`, got `number`");
});
