import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

const test = { from: "package", name: "test", package: "node:test" };

export default defineConfig(
  { ignores: ["dist", "build", "template", "example/*.js"] },
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [test] }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  { files: ["**/*.js"], extends: [tseslint.configs.disableTypeChecked] },
);
