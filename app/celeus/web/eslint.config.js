import js from "@eslint/js";

// What types can tell, as names that do not exist, tsc tells.
export default [
  { ignores: ["**/vendor/**", "**/node_modules/**"] },
  js.configs.recommended,
  {
    files: ["static/js/**/*.js", "*.js"],
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-undef": "off",
      complexity: ["error", 15],
      "default-case-last": "error",
      eqeqeq: "error",
      "max-depth": ["error", 3],
      "max-params": ["error", 5],
      "no-console": "error",
      "no-eval": "error",
      "no-implicit-coercion": "error",
      "no-param-reassign": "error",
      "no-shadow": ["error", { builtinGlobals: false }],
      "no-unused-private-class-members": "error",
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      "require-await": "error",
      "sort-imports": ["error", { ignoreDeclarationSort: true, ignoreCase: true }],
    },
  },
];
