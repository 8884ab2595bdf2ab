import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "build", "node_modules", "template", "example/*.js"] },
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  { rules: { "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }] } },
  { languageOptions: { parserOptions: { projectService: true } } },
  { files: ["*.js"], extends: [tseslint.configs.disableTypeChecked] },
);
